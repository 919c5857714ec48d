#include "analysis/stage_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/pipeline.h"
#include "support/records.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

// Ops of 2, 1 and 1 in a chain: one core, both cores, the other core.
ProblemDraft stages_on_two_cores() {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.kinds = {{"core"}, {"pair"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{"ram"}};
  draft.cluster.devices = {device_record("cpu:0", KindId{0}), device_record("cpu:0-1", KindId{1}),
                           device_record("cpu:1", KindId{0})};
  for (Device& device : draft.cluster.devices) device.space = SpaceId{0};
  draft.cluster.devices[0].uses = {{ResourceId{0}, 1}};
  draft.cluster.devices[1].uses = {{ResourceId{0}, 1}, {ResourceId{1}, 1}};
  draft.cluster.devices[2].uses = {{ResourceId{1}, 1}};
  draft.models = {model_record("m")};
  draft.ops = {op_record("p", {2, 2}), op_record("q", {1, 1}), op_record("r", {1, 1})};
  draft.tensors = {tensor_record(OpId{0}, {OpId{1}}), tensor_record(OpId{1}, {OpId{2}})};
  return draft;
}

Plan one_op_on_each(const Problem& problem) {
  Placement placement(3);
  for (const OpId op : problem.ops()) placement[op] = DeviceId{op.index()};
  return pipeline_plan(problem, std::move(placement));
}

TEST(StageTurns, AreTheOffsetsModuloThePeriod) {
  const Problem problem(stages_on_two_cores());
  Plan plan = one_op_on_each(problem);
  ASSERT_EQ(plan.value, 3);
  // The same, 2.5 later: the first stage begins before the period's end and goes on at its start.
  for (Stage& stage : plan.stages) stage.offset = *stage.offset + 2.5;
  ASSERT_TRUE(verify(problem, plan).empty());
  std::vector<double> busy(3, 0);
  for (const StageTurn& turn : stage_turns(problem, plan)) {
    EXPECT_GE(turn.start, 0);
    EXPECT_LE(turn.end, 3);
    busy[turn.stage] += turn.end - turn.start;
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(busy[i], plan.stages[i].load, 1e-9);
  EXPECT_GT(stage_turns(problem, plan).size(), 3U);
}

// What is stated stays; the rest is as early as the stages before allow.
TEST(StageTurns, OffsetsThatAreLeftOutAreThoseOfAList) {
  const Problem problem(stages_on_two_cores());
  Plan plan = one_op_on_each(problem);
  for (Stage& stage : plan.stages) stage.offset.reset();
  plan.stages[0].offset = 0.5;
  state_offsets(problem, plan);
  EXPECT_EQ(plan.stages[0].offset, 0.5);
  EXPECT_EQ(plan.stages[1].offset, 2.5) << "both cores, after the first stage";
  EXPECT_EQ(plan.stages[2].offset, 0) << "the other core, before both are taken";
  plan.value = kInfinity;
  plan.value = verified_value(problem, plan);
  EXPECT_EQ(plan.value, 3.5);
  EXPECT_TRUE(verify(problem, plan).empty());
}

TEST(StageTurns, OffsetsThatAreNoTimesAreLeftForTheVerifier) {
  const Problem problem(stages_on_two_cores());
  Plan plan = one_op_on_each(problem);
  for (Stage& stage : plan.stages) stage.offset.reset();
  plan.stages[0].offset = -1;
  state_offsets(problem, plan);
  EXPECT_FALSE(plan.stages[1].offset);
  EXPECT_FALSE(verify(problem, plan).empty());
}

TEST(StageTurns, ThoseOnTheBusiestCoreMakeThePeriod) {
  const Problem problem(stages_on_two_cores());
  const TakingTurns turns = limiting_turns(problem, one_op_on_each(problem));
  EXPECT_THAT(turns.stages, ::testing::UnorderedElementsAre(0U, 1U));
  EXPECT_THAT(turns.resources, ::testing::ElementsAre(ResourceId{0}));
  EXPECT_NEAR(turns.time, 3, 1e-9);
  // A single stage that is as long as the period is the limit itself.
  const Problem alone(stages_on_two_cores());
  EXPECT_TRUE(
      limiting_turns(alone, pipeline_plan(alone, Placement(3, DeviceId{0}))).stages.empty());
}

// `phased`: every pass has its turns, and the backward ones come after the forward ones.
TEST(StageTurns, OfPhasedTrainingFillItsTwoPeriods) {
  ProblemDraft draft = stages_on_two_cores();
  draft.rules.training = TrainingMode::phased;
  draft.rules.contiguity = Contiguity::none;
  draft.ops.push_back(op_record("gradient", {5, 5}, 0, true));
  const Problem problem(std::move(draft));
  Placement placement(4);
  for (std::size_t i = 0; i < 4; ++i) placement[OpId{i}] = DeviceId{i % 3};
  const Plan plan = pipeline_plan(problem, std::move(placement));
  ASSERT_EQ(plan.value, 3 + 5);
  std::vector<double> busy(3, 0);
  for (const StageTurn& turn : stage_turns(problem, plan)) {
    EXPECT_LE(turn.end, plan.value + 1e-9);
    busy[turn.stage] += turn.end - turn.start;
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    EXPECT_NEAR(busy[i], plan.stages[i].load, 1e-9);
  }
}

}  // namespace
}  // namespace placewright::testing
