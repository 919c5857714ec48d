#include "problem/op_times.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "evaluate/placement_plan.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright::testing {
namespace {

TEST(OpTimes, OfAPlanInCallsEndWithItsValue) {
  std::size_t checked = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Problem problem(random_draft(
        {.objective = Objective::call_latency, .interconnect = InterconnectKind::host, .ops = 10},
        seed));
    RandomSource random(seed);
    const auto plan = plan_of_placement(problem, random_placement(problem, random));
    if (!plan) continue;
    const OpTimes times = op_times(problem, *plan);
    EXPECT_NEAR(*std::max_element(times.end.begin(), times.end.end()), plan->value,
                1e-9 * plan->value);
    for (const Call& call : plan->calls) {
      for (const OpId op : call.ops) {
        EXPECT_EQ(times.start[op], call.start);
        EXPECT_EQ(times.end[op], call.end);
      }
    }
    ++checked;
  }
  EXPECT_GT(checked, 5U);
}

TEST(OpTimes, OfAScheduleAreItsOwnAndOfAPipelineNone) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    ProblemDraft draft = random_draft({.objective = objective, .ops = 8}, 1);
    draft.rules.contiguity = Contiguity::none;
    const Problem problem(std::move(draft));
    RandomSource random(1);
    const Plan plan = *plan_of_placement(problem, random_placement(problem, random));
    const OpTimes times = op_times(problem, plan);
    const Table<OpId, double> none(problem.op_count(), 0);
    EXPECT_EQ(times.start, plan.schedule ? plan.schedule->start : none);
    EXPECT_EQ(times.end, plan.schedule ? plan.schedule->end : none);
  }
}

}  // namespace
}  // namespace placewright::testing
