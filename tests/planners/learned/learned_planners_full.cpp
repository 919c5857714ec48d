// The learned planners learn: small problems with a known optimum, with each of ten seeds.

#include <gtest/gtest.h>

#include "planners/learned/first_plan.h"
#include "planners/learned/learner.h"
#include "planners/learned/rollouts.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright::learned {
namespace {

using testing::random_draft;
using testing::RandomProblemOptions;

// The least value that any placement has under the evaluator that the planners learn from.
double best_of_all_placements(const Problem& problem) {
  Control control("test", Budget{.seconds = 300});
  const PlacementGraph graph =
      placement_graph(problem, {.coarsen = Joining::none}, Placement(problem.op_count()));
  Rollouts rollouts(problem, graph, control, *first_plan(problem, control).plan);
  testing::for_each_placement(problem, [&](const Placement& placement) {
    std::vector<std::int32_t> row;
    for (const NodeId node : ids<NodeId>(graph.node_count())) {
      row.push_back(static_cast<std::int32_t>(placement[graph.ops[node].front()].index()));
    }
    rollouts.evaluate(row);
  });
  return rollouts.best_plan().value;
}

class LearnedPlanner : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!why_no_plugin().empty()) GTEST_SKIP() << why_no_plugin();
  }

  static double planned(const Problem& problem, std::uint64_t seed, std::uint64_t steps) {
    PlanRequest request;
    request.planner = GetParam();
    request.budget = Budget{.seconds = 300, .steps = steps, .threads = 1, .seed = seed};
    return make_plan(problem, planning_registry(), request).value();
  }
};

TEST_P(LearnedPlanner, LearnsTwoOpsWithEachOfTenSeeds) {
  RandomProblemOptions options;
  options.ops = 2;
  options.devices = 2;
  const Problem problem(random_draft(options, 5));
  const double best = best_of_all_placements(problem);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_LE(planned(problem, seed, 50'000), best * (1 + 1e-9)) << "seed " << seed;
  }
}

TEST_P(LearnedPlanner, LearnsTenOpsWithEachOfTenSeeds) {
  RandomProblemOptions options;
  options.ops = 10;
  options.devices = 2;
  const Problem problem(random_draft(options, 3));
  const double best = best_of_all_placements(problem);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_LE(planned(problem, seed, 1'000'000), best * (1 + 1e-9)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, LearnedPlanner, ::testing::Values("hsdag", "placeto", "rnn"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace placewright::learned
