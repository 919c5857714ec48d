// The verifier as the last line of defence: valid plans of random problems, each broken in one of
// more than seventy ways (support/plan_mutants.h). Every mutant is refused, and the finding is the
// one that the way of breaking it asks for.

#include "support/plan_mutants.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planning/service.h"
#include "support/planner_case.h"
#include "support/small_problem.h"

namespace placewright::testing {
namespace {

constexpr std::uint64_t kProblems = 150;  // of each objective

double end_of(const Plan& plan) {
  double end = plan.value;
  if (plan.schedule) {
    for (const double time : plan.schedule->end) end = std::max(end, time);
  }
  for (const Call& call : plan.calls) end = std::max(end, call.end);
  return end;
}

// By a planner that leaves devices busy, so that there is something to break.
std::optional<Plan> valid_plan(const Problem& problem, std::uint64_t seed) {
  PlanRequest request;
  request.planner = seed % 3 == 0 ? "topo" : "random";
  request.budget = {.seconds = 60, .steps = 1, .seed = seed};
  const PlanOutcome outcome = make_plan(problem, registry(), request);
  const std::optional<Plan>& plan = outcome.answer.plan;
  const bool broken_already =
      plan && plan->stages.empty() && problem.objective() == Objective::throughput;
  if (!plan || plan->value <= 0 || broken_already) return std::nullopt;
  if (problem.objective() == Objective::call_latency && plan->calls.empty()) return std::nullopt;
  return plan;
}

std::vector<MutationOperator> operators_of(Objective objective) {
  std::vector<MutationOperator> all;
  const auto add = [&](std::span<const MutationOperator> some) {
    all.insert(all.end(), some.begin(), some.end());
  };
  add(operators_of_any_plan());
  if (is_schedule(objective)) add(operators_of_schedules());
  if (objective == Objective::throughput) add(operators_of_pipelines());
  if (objective == Objective::call_latency) add(operators_of_calls());
  return all;
}

std::vector<Violation> findings_of(const Mutant& mutant) {
  std::vector<Violation> all = verify(Problem(ProblemDraft(mutant.draft)), mutant.plan);
  const auto stated = verify(mutant.statement, mutant.plan.value);
  all.insert(all.end(), stated.begin(), stated.end());
  return all;
}

// How often each operator had something to break, and how many mutants were refused.
struct Counts {
  std::map<std::string, int> made;
  int refused = 0;
};

void break_plan(const Problem& problem, const Plan& plan, std::uint64_t seed, Counts& counts) {
  RandomSource random(seed);
  for (const MutationOperator& each : operators_of(problem.objective())) {
    Mutant mutant{problem, problem.draft(), plan, {}, end_of(plan), random};
    const std::optional<ViolationCode> expected = each.apply(mutant);
    if (!expected) continue;
    ++counts.made[each.name];
    std::string found;
    for (const Violation& violation : findings_of(mutant)) {
      found += fmt::format("{} ", placewright::name_of(violation.code));
    }
    const bool right = found.find(placewright::name_of(*expected)) != std::string::npos;
    counts.refused += right ? 1 : 0;
    EXPECT_TRUE(right) << each.name << ", problem " << seed << ": expected "
                       << placewright::name_of(*expected) << ", found " << found;
  }
}

TEST(PlanMutants, AreRefusedWithTheRightFinding) {
  Counts counts;
  for (const Objective objective : {Objective::latency, Objective::total_completion,
                                    Objective::throughput, Objective::call_latency}) {
    for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
      const std::optional<Problem> problem = small_problem(objective, seed);
      if (!problem) continue;
      const std::optional<Plan> plan = valid_plan(*problem, seed);
      if (!plan) continue;
      ASSERT_TRUE(verify(*problem, *plan).empty()) << seed;
      break_plan(*problem, *plan, seed, counts);
    }
    for (const MutationOperator& each : operators_of(objective)) counts.made.emplace(each.name, 0);
  }
  int all = 0;
  for (const auto& [name, made] : counts.made) {
    EXPECT_GT(made, 0) << "no plan to break by: " << name;
    all += made;
  }
  fmt::print("plan mutants: {} by {} operators, {} refused with the right finding\n", all,
             counts.made.size(), counts.refused);
}

}  // namespace
}  // namespace placewright::testing
