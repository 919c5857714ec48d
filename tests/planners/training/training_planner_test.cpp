#include "planners/training/training_planner.h"

#include <gtest/gtest.h>

#include "planners/training/training_search.h"
#include "support/training_cases.h"
#include "verify/training.h"

namespace placewright {
namespace {

void expect_best(std::uint64_t seed, std::size_t layers, int gpus) {
  const TrainingProblem problem = testing::random_training_problem(seed, layers, gpus);
  const double best = testing::best_training_value(problem);
  const TrainingOutcome outcome = plan_training(problem, {.seconds = 60});
  ASSERT_EQ(outcome.proved_infeasible, best == kInfinity) << "seed " << seed;
  if (best == kInfinity) return;
  EXPECT_NEAR(outcome.answer.value, best, 1e-9 * best) << "seed " << seed;
  EXPECT_LE(outcome.answer.gap(), 1e-9) << "seed " << seed;
  EXPECT_TRUE(verify_training(problem, outcome.answer).violations.empty()) << "seed " << seed;
}

TEST(TrainingPlanner, FindsTheBestPlanOfSmallProblems) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    expect_best(seed, 1 + seed % 3, 1 + static_cast<int>(seed % 4));
  }
}

TEST(TrainingPlanner, FindsTheBestPlanOfEightGpusAndSixLayers) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) expect_best(seed, 6, 8);
}

TEST(TrainingPlanner, TheBoundIsBelowTheBestPlan) {
  int compared = 0;
  int by_partitions = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const TrainingProblem problem =
        testing::random_training_problem(seed, 1 + seed % 5, 1 + static_cast<int>(seed % 4));
    const TrainingOutcome outcome = plan_training(problem, {.seconds = 60});
    if (outcome.proved_infeasible) continue;
    ++compared;
    std::string method;
    // The bound goes only as far as the value that it is told.
    const double far = 1.5 * outcome.answer.value;
    const double bound = training_bound(StepModel(problem), far, method);
    if (method == "partitions of the layers") ++by_partitions;
    EXPECT_LE(bound, outcome.answer.value * (1 + 1e-9)) << "seed " << seed;
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(by_partitions, 30);
}

// More GPUs than the exact search takes: its plans keep the rules, and no plan is below the bound.
TEST(TrainingPlanner, PlansOfLargerClustersAreValidAndAboveTheirBound) {
  int planned = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const TrainingProblem problem = testing::random_training_problem(seed, 7, 16);
    const TrainingOutcome outcome = plan_training(problem, {.seconds = 5});
    if (outcome.answer.plan.stages.empty()) continue;
    ++planned;
    EXPECT_TRUE(verify_training(problem, outcome.answer).violations.empty()) << "seed " << seed;
  }
  EXPECT_GT(planned, 30);
}

}  // namespace
}  // namespace placewright
