// 5,000 random cases of up to 8 GPUs and 6 layers against enumeration.

#include <gtest/gtest.h>

#include "planners/training/training_planner.h"
#include "support/training_cases.h"

namespace placewright {
namespace {

TEST(TrainingPlannerFull, EqualsEnumeration) {
  for (std::uint64_t seed = 10'000; seed < 15'000; ++seed) {
    const bool large = seed % 500 == 0;
    const std::size_t layers = large ? 6 : 1 + seed % 4;
    const int gpus = large ? 8 : 1 + static_cast<int>(seed % 5);
    const TrainingProblem problem = testing::random_training_problem(seed, layers, gpus);
    const double best = testing::best_training_value(problem);
    const TrainingOutcome outcome = plan_training(problem, {.seconds = 60});
    ASSERT_EQ(outcome.proved_infeasible, best == kInfinity) << "seed " << seed;
    if (best == kInfinity) continue;
    ASSERT_NEAR(outcome.answer.value, best, 1e-9 * best) << "seed " << seed;
  }
}

}  // namespace
}  // namespace placewright
