// What the runs of arrivals come to: the total completion of each, and the median over them.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "problem/measured.h"
#include "running/arrival_run.h"

namespace placewright {

struct WeightedArrival {
  double time;  // milliseconds
  double weight;
};

// Of one rule.
struct ArrivalTotals {
  std::vector<double> totals;  // weighted total completion of each run, in milliseconds
  std::size_t typical = 0;     // the run with the median total
  Measured measured;           // of all runs with the same decisions, whichever rule made them
  std::optional<std::size_t> alike = {};  // the first other rule that always made the same
};

// By rule. Rules that make the same decisions differ in nothing but luck, so their runs count
// together, as far as both are `comparable`: as far as order and devices tell all of a run.
std::vector<ArrivalTotals> totals_of(const ArrivalRuns& runs,
                                     std::span<const WeightedArrival> arrivals,
                                     std::span<const char> comparable);

}  // namespace placewright
