// Latency against load: the same arrivals, closer and closer to each other, and how much load still
// meets what users were promised.

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "serving/simulation.h"

namespace placewright {

struct LoadPoint {
  double load = 0;
  std::vector<ServiceSummary> summaries;  // by model, then of all
};

struct LoadSweep {
  std::vector<LoadPoint> points;
  // The largest load of these at which nothing is refused and 99 % of the requests that have a
  // deadline meet it; 0: none. Nullopt: no request has a deadline.
  std::optional<double> largest_load;
};

// Loads from 0.1 to 0.95.
LoadSweep sweep_loads(std::span<const ServedModel> models, const SchedulerOptions& options,
                      const std::vector<RequestArrival>& arrivals, double overhead = 0);

}  // namespace placewright
