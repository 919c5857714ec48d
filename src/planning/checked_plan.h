// What a plan must pass before anyone outside sees it, and how bounds are joined.

#pragma once

#include <stdexcept>
#include <string>

#include "problem/plan.h"

namespace placewright {

// A planner made a plan that the verifier refuses: an internal error, never the user's mistake.
class WrongPlan : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Why the plan must not be handed out, in one sentence; empty when the verifier accepts it.
std::string fault_of_plan(const Problem& problem, const std::string& planner, const Plan& plan);

// About how long that takes, so that the time for it can be kept back.
double seconds_to_check(const Problem& problem);

// The same for a plan that a planner still works on: peak memory is seen to at the end
// (peak_memory.h).
std::string fault_of_incumbent(const Problem& problem, const std::string& planner,
                               const Plan& plan);

// The certificate with the larger bound.
const Certificate& better_bound(const Certificate& a, const Certificate& b);

}  // namespace placewright
