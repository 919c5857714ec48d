// Arrivals as comma-separated values: when a request came and for which model, as logs of servers
// have them.
//
//   time,model,deadline,cancelled
//   0,squeezenet,,
//   3.5,resnet50,40,
//
// The first line names the columns, in any order; `time` and `model` are required. All moments are
// milliseconds.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "problem/arrival_trace.h"

namespace placewright {

// Whether the text begins as such a file does: no JSON.
bool is_arrival_rows(std::string_view text);

// Sorted by time. Throws InputError with the line.
ArrivalTrace parse_arrival_rows(std::string_view text, const std::string& path);

}  // namespace placewright
