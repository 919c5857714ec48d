// `placewright run --trace`: models that arrive over time, planned as they come and really run.

#pragma once

#include <cstdint>
#include <string>

#include "cli/exit_code.h"
#include "cli/output_options.h"

namespace placewright::cli {

struct RunTraceOptions {
  std::string trace;       // a trace file
  std::size_t repeat = 5;  // runs of each method
  std::uint64_t seed = 1;  // of the inputs
  std::string timeline;    // where to write the time lines; empty: nowhere
  std::string path;        // where to write what --json prints; empty: nowhere
  OutputOptions output;
};

ExitCode run_trace(const RunTraceOptions& options);

}  // namespace placewright::cli
