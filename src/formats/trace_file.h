// Trace files: models that arrive over time, for `placewright online`.
//
//   {"placewright": "trace", "version": 1, "name": "morning",
//    "models": ["bert.json", "resnet.json"],     problem files, from the trace's folder
//    "cluster": "devices.json",                  where the model files have no devices
//    "arrivals": [{"model": "bert", "name": "bert 1", "time": 0, "weight": 1, "deadline": 20,
//                  "cancelled": 12}]}
//
// `model` is the name of a model in one of the files; `name` of the copy is made from it and a
// number where it is absent. `deadline` and `cancelled` are moments, in the unit of the models.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/arrival_trace.h"

namespace placewright {

struct TraceFile {
  ArrivalTrace trace;
  std::vector<std::string> models;    // paths as the trace's folder makes them
  std::string cluster;                // likewise; empty: the models have their own devices
  std::vector<std::string> warnings;  // unknown keys
};

// Whether the text says that it is a trace. Throws InputError where it is no JSON object.
bool is_trace(std::string_view text, const std::string& origin);

// Throws InputError.
TraceFile parse_trace(std::string_view text, const std::string& path);

}  // namespace placewright
