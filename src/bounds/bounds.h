// Lower bounds: values that no plan can beat. Each holds with memory limits, congestion, several
// models.

#pragma once

#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Bound {
  std::string name;
  double value = 0;
};

// All bounds that apply to the problem's objective.
std::vector<Bound> lower_bounds(const Problem& problem);

// The best of them.
Certificate best_lower_bound(const Problem& problem);

}  // namespace placewright
