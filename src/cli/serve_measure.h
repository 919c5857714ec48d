// `placewright serve --measure`: serves random requests in this process, without a network, and
// shows their latencies beside the predicted ones.

#pragma once

#include <optional>
#include <string>

#include "cli/exit_code.h"
#include "cli/serve_simulation.h"
#include "cli/serve_start.h"

namespace placewright::cli {

struct ServeMeasureOptions {
  std::string duration;        // text of a duration; empty: nothing is measured
  std::optional<double> load;  // the share of the time that the requests take; else as --rate says

  void add_to(CLI::App& verb);
};

ExitCode measure_serving(const ServeSimulationOptions& simulation, const ServeStartOptions& start,
                         const ServeMeasureOptions& options);

}  // namespace placewright::cli
