#include "planning/tie_breaking.h"

#include <set>

#include <gtest/gtest.h>

#include "evaluate/placement_plan.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// A chain of ops that both devices run equally fast, and a link that costs nothing.
Problem chain(double link_latency) {
  ProblemDraft draft;
  draft.unit = TimeUnit::milliseconds;
  draft.cluster.kinds = {{.name = "kind"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}, {.name = "b", .kind = KindId{0}}};
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}, .latency = link_latency},
                         {.from = DeviceId{1}, .to = DeviceId{0}, .latency = link_latency}};
  draft.models = {{.name = "model", .deadline = {}}};
  for (const char* name : {"0", "1", "2", "3"}) draft.ops.push_back({.name = name, .time = {1}});
  for (std::size_t i = 0; i + 1 < draft.ops.size(); ++i) {
    Tensor tensor;
    tensor.producer = OpId{i};
    tensor.consumers = {OpId{i + 1}};
    tensor.bytes = 4;
    draft.tensors.push_back(tensor);
  }
  return Problem(std::move(draft));
}

std::size_t devices_in(const Plan& plan) {
  return std::set<DeviceId>(plan.placement.begin(), plan.placement.end()).size();
}

TEST(TieBreaking, LeavesADeviceThatBringsNothing) {
  const Problem problem = chain(0);
  Placement placement(problem.op_count(), DeviceId{0});
  placement[OpId{2}] = DeviceId{1};
  const Plan plan = *plan_of_placement(problem, placement);
  ASSERT_EQ(devices_in(plan), 2U);
  const Plan better = with_fewer_devices_and_transfers(problem, plan, Control("test", Budget{}));
  EXPECT_EQ(devices_in(better), 1U);
  EXPECT_EQ(better.value, plan.value);
  EXPECT_TRUE(better.schedule->transfers.empty());
  EXPECT_TRUE(verify(problem, better).empty());
}

TEST(TieBreaking, KeepsADeviceThatTheRulesAskFor) {
  ProblemDraft draft = chain(0).draft();
  draft.ops[2].pinned_to = DeviceId{1};
  const Problem problem(std::move(draft));
  Placement placement(problem.op_count(), DeviceId{0});
  placement[OpId{2}] = DeviceId{1};
  placement[OpId{1}] = DeviceId{1};
  const Plan plan = *plan_of_placement(problem, placement);
  const Plan same = with_fewer_devices_and_transfers(problem, plan, Control("test", Budget{}));
  EXPECT_EQ(same.placement[OpId{2}], DeviceId{1});
  EXPECT_EQ(same.value, plan.value);
}

TEST(TieBreaking, IsNeverWorseOnRandomProblems) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const testing::RandomProblemOptions options{.ops = 10,
                                                .binding_memory = seed % 2 == 0,
                                                .unsupported = seed % 3 == 0,
                                                .pins = seed % 5 == 0,
                                                .colocation = seed % 7 == 0,
                                                .overheads = seed % 4 == 0,
                                                .zero_times = seed % 2 == 1};
    const Problem problem(testing::random_draft(options, seed));
    const PlanOutcome outcome = make_plan(
        problem, planning_registry(), {.planner = "random", .budget = {.steps = 20, .seed = seed}});
    if (!outcome.answer.plan) continue;
    const Plan& plan = *outcome.answer.plan;
    const Plan better = with_fewer_devices_and_transfers(problem, plan, Control("test", Budget{}));
    EXPECT_LE(better.value, plan.value) << seed;
    EXPECT_LE(devices_in(better), devices_in(plan)) << seed;
    EXPECT_TRUE(verify(problem, better).empty()) << seed;
  }
}

TEST(TieBreaking, IsWhatTheUserGetsByDefault) {
  const Problem problem = chain(0);
  const PlanOutcome outcome =
      make_plan(problem, planning_registry(), {.budget = {.steps = 1000, .seed = 1}});
  ASSERT_TRUE(outcome.answer.plan);
  EXPECT_EQ(devices_in(*outcome.answer.plan), 1U);
}

}  // namespace
}  // namespace placewright
