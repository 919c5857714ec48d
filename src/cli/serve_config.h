// `placewright serve --config FILE`: what is served and how, as JSON
// (docs/schema/serve-config.json).
//
// Each key stands for the flag of the same name, and a flag that is given too is what counts.

#pragma once

#include <string>

#include <CLI/App.hpp>

#include "cli/serve_simulation.h"
#include "cli/serve_start.h"

namespace placewright::cli {

// Sets what no flag of the verb has set. Paths count from the folder of the file. Throws InputError
// with the place in the file.
void apply_config(const std::string& path, const CLI::App& verb, ServeSimulationOptions& simulation,
                  ServeStartOptions& start);

}  // namespace placewright::cli
