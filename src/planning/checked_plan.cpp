#include "planning/checked_plan.h"

#include <vector>

#include <fmt/format.h>

#include "verify/verifier.h"

namespace placewright {

std::string fault_of_plan(const Problem& problem, const std::string& planner, const Plan& plan) {
  const std::vector<Violation> violations = verify(problem, plan);
  if (violations.empty()) return {};
  return fmt::format("planner '{}' made a wrong plan: {} ({} violation{} in all)", planner,
                     violations.front().message, violations.size(),
                     violations.size() == 1 ? "" : "s");
}

const Certificate& better_bound(const Certificate& a, const Certificate& b) {
  return b.lower_bound > a.lower_bound ? b : a;
}

}  // namespace placewright
