#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/baselines/baselines.h"
#include "planners/latency/latency.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

Answer answer_of(const PlannerEntry& planner, const Problem& problem, std::uint64_t steps) {
  Control control(planner.name, {.seconds = 600, .steps = steps});
  EXPECT_EQ(planner.refusal(problem), "");
  Answer answer = planner.plan(problem, Settings{planner.options}, control);
  EXPECT_TRUE(answer.plan) << answer.reason;
  EXPECT_TRUE(!answer.plan || verify(problem, *answer.plan).empty());
  return answer;
}

Problem transformer(std::size_t ops, std::size_t devices) {
  return Problem(generate({.family = GraphFamily::transformer, .ops = ops, .devices = devices}));
}

// More than `decompose` takes.
TEST(FewDevices, BeatsListsOnDozensOfDevices) {
  const Problem problem = transformer(301, 40);
  const Answer few = answer_of(few_devices(), problem, 20'000);
  EXPECT_LT(few.value(), 0.99 * answer_of(lists(), problem, 20'000).value());
  EXPECT_EQ(few.certificate.lower_bound, 0) << "what is proved of a few devices is not of all";
}

TEST(FewDevices, IsNearTheOptimumOfAllDevices) {
  const Problem problem = transformer(61, 10);
  const Answer exact = answer_of(decompose(), problem, 2'000'000);
  ASSERT_EQ(exact.status(), Status::optimal);
  const Answer few = answer_of(few_devices(), problem, 20'000);
  EXPECT_LT(few.value(), 1.02 * exact.value());
  EXPECT_GE(few.value(), exact.value() * (1 - 1e-9));
}

TEST(FewDevices, GoesOnFromThePlanThatIsThere) {
  const Problem problem = transformer(61, 10);
  const Answer exact = answer_of(decompose(), problem, 2'000'000);
  Control control("few-devices", {.seconds = 600, .steps = 100});
  control.start = &*exact.plan;
  const PlannerEntry planner = few_devices();
  EXPECT_EQ(planner.plan(problem, Settings{planner.options}, control).value(), exact.value());
}

// An op that only one device runs, far behind the stretch on which devices are tried.
TEST(FewDevices, TakesTheOnlyDeviceThatRunsAnOp) {
  ProblemDraft draft =
      generate({.family = GraphFamily::transformer, .ops = 1201, .devices = 20, .kinds = 2});
  const KindId only{draft.cluster.kinds.size()};
  draft.cluster.kinds.push_back({"only", false});
  draft.cluster.devices.back().kind = only;
  for (Op& op : draft.ops) op.time.push_back(100 * op.time.front());
  draft.ops[1100].time = {kUnsupported, kUnsupported, 1};
  const Problem problem(std::move(draft));
  const Answer few = answer_of(few_devices(), problem, 20'000);
  EXPECT_EQ(few.plan->placement[OpId{1100}], DeviceId{19});
  EXPECT_LT(few.value(), answer_of(lists(), problem, 20'000).value());
}

TEST(FewDevices, LeavesWideGraphsToOthers) {
  const Problem problem(generate({.family = GraphFamily::layered, .ops = 400, .devices = 20}));
  EXPECT_NE(few_devices().refusal(problem), "");
}

}  // namespace
}  // namespace placewright
