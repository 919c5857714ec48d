#include "report/plan_story.h"

#include <gtest/gtest.h>

#include "analysis/more_of.h"
#include "evaluate/placement_plan.h"

namespace placewright {
namespace {

// A chain of two ops of 6 and 3 ms, each on a device of its own, with a transfer of 1 ms between.
ProblemDraft two_devices(Objective objective) {
  ProblemDraft draft;
  draft.name = "story";
  draft.unit = TimeUnit::milliseconds;
  draft.objective = objective;
  draft.cluster.kinds = {{.name = "gpu"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}, {.name = "b", .kind = KindId{0}}};
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}, .bandwidth = 1},
                         {.from = DeviceId{1}, .to = DeviceId{0}, .bandwidth = 1}};
  draft.models = {{.name = "model"}};
  draft.ops = {{.name = "long", .pinned_to = DeviceId{0}, .time = {6}},
               {.name = "short", .pinned_to = DeviceId{1}, .time = {3}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 1}};
  return draft;
}

Plan one_op_each(const Problem& problem) {
  Placement placement(2, DeviceId{0});
  placement[OpId{1}] = DeviceId{1};
  return *plan_of_placement(problem, placement);
}

PlanStory story_of(const Problem& problem, double bound) {
  return plan_story(problem, one_op_each(problem), {bound, "a test"});
}

TEST(PlanStory, SchedulesAreLimitedByTheLargestShareOfTheirPath) {
  const Problem problem(two_devices(Objective::latency));
  const PlanStory story = story_of(problem, 5);
  EXPECT_EQ(story.limit,
            "Limited by compute on a: 60 % of the critical path, 10 ms (compute on b 30 %, "
            "transfers 10 %).");
  // 6 / 1.1 + 1 + 3
  EXPECT_EQ(story.help,
            "What would help most: with 10 % more speed of a this plan takes 9.455 ms (5 % less).");
}

TEST(PlanStory, TransfersAreToldFromCompute) {
  ProblemDraft draft = two_devices(Objective::latency);
  draft.tensors[0].bytes = 20;
  const PlanStory story = story_of(Problem(std::move(draft)), 5);
  EXPECT_TRUE(story.limit.starts_with("Limited by transfers: 69 % of the critical path, 29 ms"));
  EXPECT_TRUE(story.help.starts_with(
      "What would help most: with 10 % more bandwidth from a to b this plan takes 27.18 ms"));
}

TEST(PlanStory, PipelinesAreLimitedByTheirFullestStage) {
  const PlanStory story = story_of(Problem(two_devices(Objective::throughput)), 5);
  EXPECT_TRUE(
      story.limit.starts_with("Limited by stage 1 of 2, on a: compute 6 ms, in 0 ms, out "));
}

// Both need the one core, so that a sample takes as long as both: no stage alone is the limit.
TEST(PlanStory, StagesThatShareACoreTakeTurns) {
  ProblemDraft draft = two_devices(Objective::throughput);
  draft.cluster.links.clear();
  draft.cluster.resources = {{.name = "core 0"}};
  draft.cluster.spaces = {{.name = "ram"}};
  for (Device& device : draft.cluster.devices) {
    device.space = SpaceId{0};
    device.uses = {{ResourceId{0}, 1}};
  }
  const PlanStory story = story_of(Problem(std::move(draft)), 5);
  EXPECT_EQ(
      story.limit,
      "Limited by stages 1 and 2 of 2, which take turns on core 0: 9 ms of a period of 9 ms.");
}

// Two equal devices that end together: more of one leaves the other as it is.
TEST(PlanStory, SaysWhereNothingHelps) {
  ProblemDraft draft = two_devices(Objective::latency);
  draft.tensors.clear();
  draft.ops[1].time = {6};
  EXPECT_EQ(story_of(Problem(std::move(draft)), 5).help,
            "10 % more speed of any one of the busiest devices, or bandwidth of any one of the "
            "busiest links, would make this plan less than 0.5 % better.");
}

TEST(PlanStory, TheBoundSaysHowMuchIsLeft) {
  const Problem problem(two_devices(Objective::latency));
  EXPECT_TRUE(story_of(problem, 10).limit.ends_with("No plan for these devices is better."));
  EXPECT_TRUE(story_of(problem, 9.8)
                  .limit.ends_with("No plan for these devices can be more than 2 % better."));
  EXPECT_EQ(story_of(problem, 5).limit.find("No plan"), std::string::npos);
}

// What the sentence promises is what an evaluation of the faster problem gives.
TEST(SamePlanGains, AreThoseOfThePlanEvaluatedAgain) {
  const Problem problem(two_devices(Objective::latency));
  const Plan plan = one_op_each(problem);
  const auto gains = gains_of_same_plan(problem, plan, scarce_assets(problem, plan, 9), 0.5);
  ASSERT_EQ(gains.size(), 3U);
  EXPECT_NEAR(gains[0].gain, 6 - 6 / 1.5, 1e-9);
  EXPECT_NEAR(gains[1].gain, 3 - 3 / 1.5, 1e-9);
  EXPECT_NEAR(gains[2].gain, 1 - 1 / 1.5, 1e-9);
  EXPECT_EQ(text_of(problem, gains[2].asset), "bandwidth from a to b");
}

}  // namespace
}  // namespace placewright
