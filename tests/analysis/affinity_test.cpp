#include "analysis/affinity.h"

#include <gtest/gtest.h>

#include "analysis/completion_report.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/published.h"

namespace placewright {
namespace {

TEST(Affinity, SumOfDifferencesOverTheShareOfCommonTypes) {
  const SpeedUpProfile a{"a", {1, 5, 2}, {"conv", "relu", "conv"}};
  const SpeedUpProfile b{"b", {4, 1}, {"conv", "pool"}};
  // |1 - 4| + |5 - 1| = 7; one common type of three.
  EXPECT_DOUBLE_EQ(*affinity(a, b), 21);
  EXPECT_DOUBLE_EQ(*affinity(b, a), 21);
  EXPECT_DOUBLE_EQ(*affinity(a, a), 0);
}

TEST(Affinity, ModelsWithoutACommonTypeAreNotComparable) {
  const SpeedUpProfile a{"a", {1}, {"conv"}};
  const SpeedUpProfile b{"b", {4}, {"pool"}};
  const SpeedUpProfile none{"none", {}, {}};
  EXPECT_FALSE(affinity(a, b));
  EXPECT_FALSE(affinity(a, none));
}

TEST(Affinity, ProfilesAreTheSpeedUpsInOrder) {
  const Problem problem =
      testing::published_problem("talos/six_ops.json", Objective::total_completion);
  const auto profiles = speed_up_profiles(problem);
  ASSERT_EQ(profiles.size(), 2U);
  EXPECT_EQ(profiles[0].speed_ups, (std::vector<double>{5, 1.0 / 3, 1.5}));
}

TEST(CompletionReport, SixOps) {
  const Problem problem =
      testing::published_problem("talos/six_ops.json", Objective::total_completion);
  PlanRequest request;
  request.planner = "aswm";
  const auto outcome = make_plan(problem, planning_registry(), request);
  const CompletionReport report = completion_report(problem, *outcome.answer.plan);
  const ModelCompletion& first = report.models[ModelId{0}];
  const ModelCompletion& second = report.models[ModelId{1}];
  EXPECT_DOUBLE_EQ(first.completion, 6);
  EXPECT_DOUBLE_EQ(first.alone, 4);  // op1 and op3 on the GPU, op2 on the CPU
  EXPECT_DOUBLE_EQ(*first.slowdown, 1.5);
  EXPECT_DOUBLE_EQ(second.completion, 6.5);
  EXPECT_EQ(first.moved_ops, 1U);   // op2 is faster on the CPU
  EXPECT_EQ(second.moved_ops, 1U);  // op5 is faster on the GPU; op4 is the same on both
  EXPECT_EQ(report.packed_ops, 6U);
  EXPECT_DOUBLE_EQ(report.idle[DeviceId{0}], 0);
  EXPECT_DOUBLE_EQ(report.idle[DeviceId{1}], 0.5);
}

TEST(CompletionReport, NoModelIsFasterBesideOthersThanAlone) {
  for (const char* file : {"talos/six_ops.json", "talos/two_chains.json"}) {
    const Problem problem = testing::published_problem(file, Objective::total_completion);
    for (const char* planner : {"tsam", "heft", "single", "aswm"}) {
      const auto outcome = make_plan(problem, planning_registry(), {.planner = planner});
      const CompletionReport report = completion_report(problem, *outcome.answer.plan);
      for (const ModelCompletion& model : report.models) {
        EXPECT_GE(model.slowdown.value(), 1) << file << ' ' << planner;
      }
    }
  }
}

TEST(CompletionReport, LateModelsAreNamed) {
  ProblemDraft draft =
      testing::published_file("talos/six_ops.json", Objective::total_completion).draft;
  draft.models[0].deadline = 6;
  draft.models[1].deadline = 6;
  const Problem problem(std::move(draft));
  PlanRequest request;
  request.planner = "aswm";
  const auto outcome = make_plan(problem, planning_registry(), request);
  const CompletionReport report = completion_report(problem, *outcome.answer.plan);
  EXPECT_FALSE(report.models[ModelId{0}].late);
  EXPECT_TRUE(report.models[ModelId{1}].late);
}

}  // namespace
}  // namespace placewright
