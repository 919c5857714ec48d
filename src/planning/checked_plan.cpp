#include "planning/checked_plan.h"

#include <vector>

#include <fmt/format.h>

#include "verify/verifier.h"

namespace placewright {

namespace {

std::string described(const std::string& planner, const std::vector<Violation>& violations) {
  if (violations.empty()) return {};
  return fmt::format("planner '{}' made a wrong plan: {} ({} violation{} in all)", planner,
                     violations.front().message, violations.size(),
                     violations.size() == 1 ? "" : "s");
}

}  // namespace

std::string fault_of_plan(const Problem& problem, const std::string& planner, const Plan& plan) {
  return described(planner, verify(problem, plan));
}

double seconds_to_check(const Problem& problem) {
  constexpr double kSecondsForEach = 8e-7;
  return kSecondsForEach * static_cast<double>(problem.op_count() + problem.edge_count());
}

std::string fault_of_incumbent(const Problem& problem, const std::string& planner,
                               const Plan& plan) {
  std::vector<Violation> violations = verify(problem, plan);
  std::erase_if(violations, [](const Violation& violation) {
    return violation.code == ViolationCode::peak_memory_exceeded;
  });
  return described(planner, violations);
}

const Certificate& better_bound(const Certificate& a, const Certificate& b) {
  return b.lower_bound > a.lower_bound ? b : a;
}

}  // namespace placewright
