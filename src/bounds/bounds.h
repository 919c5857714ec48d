// Lower bounds: values that no plan can beat. Each holds with memory limits, congestion, several
// models.

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Bound {
  std::string name;
  double value = 0;
};

// Asked between bounds and within the long ones, which give what they have proved by then.
using StopBounds = std::function<bool()>;
inline bool never_stop() {
  return false;
}

// All bounds that apply to the problem's objective; asked to stop, those that it has by then.
std::vector<Bound> lower_bounds(const Problem& problem, const StopBounds& stop = never_stop);

// The best of them.
Certificate best_lower_bound(const Problem& problem, const StopBounds& stop = never_stop);

}  // namespace placewright
