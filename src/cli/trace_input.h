// A trace of arrivals and the models that arrive, as verbs read them.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/output_options.h"
#include "problem/arrival_trace.h"
#include "problem/problem.h"

namespace placewright::cli {

// The models of all files as one problem for total completion, on the devices of the cluster file
// unless that is empty. Throws InputError.
Problem read_catalogue(const std::vector<std::string>& paths, const std::string& cluster,
                       const OutputOptions& output);

struct PlayedTrace {
  Problem catalogue;
  ArrivalTrace trace;
};

// The text of a trace file, and its models; every arrival is of one of them. Throws InputError.
PlayedTrace read_trace(std::string_view text, const std::string& path, const std::string& cluster,
                       const OutputOptions& output);

}  // namespace placewright::cli
