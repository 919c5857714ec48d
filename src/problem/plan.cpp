#include "problem/plan.h"

#include <algorithm>

namespace placewright {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::optimal:
      return "optimal";
    case Status::feasible:
      return "feasible";
    case Status::infeasible:
      return "infeasible";
    case Status::unknown:
      return "unknown";
  }
  return {};
}

double gap(double value, double lower_bound) {
  if (value == kInfinity) return kInfinity;
  if (value <= 0) return 0;
  return std::max(0.0, (value - lower_bound) / value);
}

Status Answer::status() const {
  if (!plan) return proved_infeasible ? Status::infeasible : Status::unknown;
  return gap(plan->value, certificate.lower_bound) <= kOptimalGap ? Status::optimal
                                                                  : Status::feasible;
}

}  // namespace placewright
