#include "bounds/whole_times.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

TEST(WholeTimes, TheLeastLatencyIsOnTheStep) {
  for (const bool congestion : {false, true}) {
    testing::RandomProblemOptions options;
    options.ops = 5;
    options.congestion = congestion;
    options.integer_times = options.zero_times = options.overheads = options.lanes = true;
    int looked_at = 0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      ProblemDraft draft = testing::random_draft(options, seed);
      for (Link& link : draft.cluster.links) link.bandwidth = 0.25;  // bytes are whole
      for (Tensor& tensor : draft.tensors) tensor.bytes = std::floor(tensor.bytes);
      for (Link& link : draft.cluster.links) link.latency = std::floor(link.latency);
      const Problem problem(std::move(draft));
      const double step = step_of_latency(problem);
      if (step == 0) continue;
      ++looked_at;
      const auto least = testing::brute_force_value(problem);
      if (!least) continue;
      const double below = *least - 0.4 * step;
      EXPECT_NEAR(on_step({below, "for tests"}, step).lower_bound, *least, 1e-6) << seed;
      EXPECT_LE(on_step({*least, "for tests"}, step).lower_bound, *least * (1 + 1e-12)) << seed;
    }
    EXPECT_GT(looked_at, 200);
  }
}

TEST(WholeTimes, FractionsHaveNoStepThatHelps) {
  testing::RandomProblemOptions options;
  options.ops = 5;
  EXPECT_EQ(step_of_latency(Problem(testing::random_draft(options, 1))), 0);
  EXPECT_DOUBLE_EQ(on_step({1.5, "for tests"}, 0).lower_bound, 1.5);
  EXPECT_DOUBLE_EQ(on_step({1.01, "for tests"}, 0.1).lower_bound, 1.1);
}

}  // namespace
}  // namespace placewright
