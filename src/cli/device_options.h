// Which devices of this machine: `--device cpu:0 --device cpu:1-2`, the same for every verb that
// uses real devices.

#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "backends/runtime.h"
#include "machine/target_cluster.h"

namespace placewright::cli {

struct DeviceOptions {
  std::vector<std::string> names;  // empty: one device for each core

  void add_to(CLI::App& verb);
  // Throws UsageError for a device that is not here.
  [[nodiscard]] std::vector<Target> targets(const std::vector<RuntimeDevice>& devices) const;
};

// The shapes of open inputs: `--shape image=1x3x224x224`.
struct ShapeOptions {
  std::vector<std::string> texts;

  void add_to(CLI::App& verb);
  // Throws UsageError.
  [[nodiscard]] Shapes shapes() const;
};

}  // namespace placewright::cli
