// What is contracted before planning: `--coarsen` and its thresholds.

#pragma once

#include <string>

#include <CLI/App.hpp>

#include "coarsen/coarsen_method.h"

namespace placewright::cli {

struct CoarseningOptions {
  CoarsenMethod method = CoarsenMethod::none;
  double speedup_ratio = CoarsenOptions{}.speedup_ratio;
  std::string longest = "10ms";

  void add_to(CLI::App& verb);
  // Throws UsageError.
  [[nodiscard]] CoarsenOptions options() const;
};

}  // namespace placewright::cli
