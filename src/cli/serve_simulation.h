// `placewright serve --simulate` and `--rate`: what a server would do, before anything is served.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/device_options.h"
#include "cli/exit_code.h"
#include "cli/output_options.h"
#include "cli/serve_options.h"

namespace placewright::cli {

struct ServeSimulationOptions {
  std::vector<std::string> models;
  ServiceOptions service;
  std::string trace;               // empty: `rates`
  std::vector<std::string> rates;  // "MODEL=N" a second
  ModelOptions model;              // of model files
  std::uint64_t requests = 20000;
  std::uint64_t seed = 1;
  std::string chart;
  OutputOptions output;
};

// Requests a second, by model, as --rate states them. Throws UsageError.
std::vector<double> rates_of(const std::vector<std::string>& texts,
                             std::vector<ServedModel>& models);

ExitCode simulate_serving(const ServeSimulationOptions& options);

}  // namespace placewright::cli
