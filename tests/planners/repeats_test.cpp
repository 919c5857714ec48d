#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/baselines/baselines.h"
#include "planners/latency/latency.h"
#include "planners/throughput/throughput.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

Answer answer_of(const PlannerEntry& planner, const Problem& problem) {
  Control control(planner.name, {.seconds = 600, .steps = 20'000});
  EXPECT_EQ(planner.refusal(problem), "");
  Answer answer = planner.plan(problem, Settings{planner.options}, control);
  EXPECT_TRUE(answer.plan) << answer.reason;
  EXPECT_TRUE(!answer.plan || verify(problem, *answer.plan).empty());
  return answer;
}

Problem transformer(Objective objective, std::size_t devices, double variation) {
  return Problem(generate({.family = GraphFamily::transformer,
                           .ops = 1201,
                           .devices = devices,
                           .variation = variation,
                           .objective = objective}));
}

// What is best for the mean layer is near the best for equal ones.
TEST(Repeats, IsNearTheOptimumOfEqualLayers) {
  const Problem problem = transformer(Objective::latency, 4, 0);
  const Answer exact = answer_of(decompose(), problem);
  ASSERT_EQ(exact.status(), Status::optimal);
  EXPECT_LT(answer_of(repeats_in_schedules(), problem).value(), 1.01 * exact.value());
}

TEST(Repeats, BeatsListsOnLayersThatDifferALittle) {
  const Problem problem = transformer(Objective::latency, 4, 0.25);
  EXPECT_LT(answer_of(repeats_in_schedules(), problem).value(),
            0.98 * answer_of(lists(), problem).value());
}

// More devices than the exact planner of a stretch takes.
TEST(Repeats, ServesDozensOfDevices) {
  const Problem problem = transformer(Objective::latency, 24, 0);
  EXPECT_LE(answer_of(repeats_in_schedules(), problem).value(),
            answer_of(lists(), problem).value());
}

TEST(Repeats, CutsPipelinesBetweenLayers) {
  const Problem problem = transformer(Objective::throughput, 4, 0.25);
  EXPECT_LT(answer_of(repeats_in_pipelines(), problem).value(),
            1.1 * answer_of(kinds(), problem).value());
}

}  // namespace
}  // namespace placewright
