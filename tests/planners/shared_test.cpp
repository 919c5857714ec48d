// Pipelines on devices that share resources: shared-search and exhaustive.

#include <gtest/gtest.h>

#include "planners/shared_checks.h"

namespace placewright {
namespace {

TEST(SharedPipelines, ExhaustiveAgreesWithBruteForceAndTheSearchAlmostAlways) {
  const testing::SharedAgreement agreement = testing::shared_agreement(0, 24, 20000);
  EXPECT_GT(agreement.served, 18);
  EXPECT_GE(agreement.found, agreement.served * 95 / 100);
}

using testing::chain_on_two_cores;

double searched_value(ProblemDraft draft) {
  const Problem problem(std::move(draft));
  PlanRequest request;
  request.planner = "shared-search";
  request.budget.steps = 5000;
  const PlanOutcome outcome = make_plan(problem, testing::registry(), request);
  EXPECT_EQ(outcome.fault, "");
  return outcome.value();
}

TEST(SharedPipelines, AreSplitAroundAPin) {
  ProblemDraft draft = chain_on_two_cores();
  draft.ops[4].pinned_to = DeviceId{0};
  EXPECT_DOUBLE_EQ(searched_value(std::move(draft)), 3);
}

TEST(SharedPipelines, ArePlannedInTwoReplicasThoughAnOpTakesHalf) {
  ProblemDraft draft = chain_on_two_cores();
  draft.rules.max_replicas = 2;
  draft.ops[2].share = {0.5, 0.5};
  for (Device& device : draft.cluster.devices) device.send_overhead = 1;
  EXPECT_DOUBLE_EQ(searched_value(std::move(draft)), 3);
}

TEST(SharedPipelines, KeepForwardAndBackwardOpsOfTrainingTogether) {
  ProblemDraft draft = chain_on_two_cores();
  for (const std::size_t i : {3U, 4U, 5U}) {
    draft.ops[i].backward = true;
    draft.colocated.push_back({OpId{5 - i}, OpId{i}});
  }
  // Three pairs of 2 on two cores.
  EXPECT_DOUBLE_EQ(searched_value(std::move(draft)), 4);
}

// Two ops that cannot be shared out take turns with the third, which is fast on both cores only.
TEST(SharedPipelines, TakeTurnsOnSetsThatOverlap) {
  ProblemDraft draft = chain_on_two_cores();
  draft.ops.resize(3);
  draft.tensors.resize(2);
  draft.ops[0].time = draft.ops[2].time = {4, 4};
  draft.ops[1].time = {8, 2};
  EXPECT_DOUBLE_EQ(searched_value(std::move(draft)), 6);
}

}  // namespace
}  // namespace placewright
