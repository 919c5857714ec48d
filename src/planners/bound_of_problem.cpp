#include "planners/bound_of_problem.h"

#include <algorithm>

#include "bounds/bounds.h"

namespace placewright {
namespace {

constexpr double kShare = 0.15;    // of the time that is left
constexpr double kAtLeast = 0.02;  // seconds: less is not worth an answer that depends on the clock

}  // namespace

Certificate bound_of_problem(const Problem& problem, const Control& control) {
  const bool timed = control.budget().steps == Budget{}.steps;
  const double left = control.remaining();
  const double until = left - std::max(kShare * left, kAtLeast);
  return best_lower_bound(
      problem, [&] { return control.interrupted() || (timed && control.remaining() < until); });
}

}  // namespace placewright
