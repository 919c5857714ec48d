#include "problem/plan.h"

#include <algorithm>

namespace placewright {

double gap(double value, double lower_bound) {
  if (value == kInfinity) return kInfinity;
  if (value <= 0) return 0;
  return std::max(0.0, (value - lower_bound) / value);
}

Status Answer::status() const {
  if (!plan) return proved_infeasible ? Status::infeasible : Status::unknown;
  return gap() <= kOptimalGap ? Status::optimal : Status::feasible;
}

}  // namespace placewright
