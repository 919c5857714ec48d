// A trace: when copies of which models arrive, and which of them are cancelled.

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace placewright {

struct TraceArrival {
  std::string model;  // of the catalogue
  std::string name;   // of this copy; unique
  double time = 0;
  double weight = 1;
  std::optional<double> deadline;   // a moment, as `time`
  std::optional<double> cancelled;  // when
};

struct ArrivalTrace {
  std::string name;
  std::vector<TraceArrival> arrivals;
};

}  // namespace placewright
