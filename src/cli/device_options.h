// Which devices of this machine: `--device cpu:0 --device cpu:1-2`, the same for every verb that
// uses real devices.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "backends/model_files.h"
#include "backends/registry.h"

namespace placewright::cli {

struct DeviceOptions {
  std::vector<std::string> names;  // empty: nested sets of the cores

  void add_to(CLI::App& verb);
  // Without names, all that the backend has. Throws UsageError for a device that is not here.
  [[nodiscard]] std::vector<Target> targets(const BackendEntry& backend) const;
};

// How long a model is measured, and whether times that were kept will do.
struct MeasuringOptions {
  double seconds = 60;
  bool fresh = false;

  void add_to(CLI::App& verb);
  void add_time_to(CLI::App& verb);
};

// The backend that reads the first of these models; the default one if none does, which then says
// why.
const BackendEntry& backend_of_models(const std::vector<std::string>& paths);

// The shapes of open inputs, `--shape image=1x3x224x224`, and the precision.
struct ModelOptions {
  std::vector<std::string> shapes;
  std::optional<Precision> precision;

  void add_to(CLI::App& verb);
  [[nodiscard]] bool given() const { return !shapes.empty() || precision; }
  // The models with these. Throws UsageError.
  [[nodiscard]] std::vector<ModelFile> files(const std::vector<std::string>& paths) const;
};

}  // namespace placewright::cli
