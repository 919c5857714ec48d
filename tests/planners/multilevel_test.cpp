#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

double value_of(const PlannerEntry& planner, const Problem& problem) {
  Control control(planner.name, {.seconds = 600, .steps = 50});
  return planner.plan(problem, Settings{planner.options}, control).value();
}

// One order of a wide graph, as `kinds` takes it, does not show where the cheap cuts are.
TEST(Multilevel, CutsWideGraphsAtTheirCheapPlaces) {
  const Problem problem(generate({.family = GraphFamily::layered,
                                  .ops = 1000,
                                  .devices = 8,
                                  .objective = Objective::throughput}));
  EXPECT_LT(value_of(multilevel_pipelines(), problem), 0.95 * value_of(kinds(), problem));
}

}  // namespace
}  // namespace placewright
