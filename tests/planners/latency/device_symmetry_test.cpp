#include "planners/latency/device_symmetry.h"

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/schedule.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

std::size_t representatives(const Problem& problem) {
  const DeviceSymmetry symmetry(problem);
  std::size_t count = 0;
  for (const DeviceId first : problem.devices()) {
    for (const DeviceId second : problem.devices()) {
      const auto [a, b] = symmetry.representative({first, second});
      if (a == first && b == second) ++count;
    }
  }
  return count;
}

// A plan and its image have the same value, and the representative becomes the pair.
TEST(DeviceSymmetry, KeepsTheValueOfPlans) {
  testing::RandomProblemOptions options;
  options.ops = 8;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Problem problem(testing::core_set_draft(options, seed));
    const DeviceSymmetry symmetry(problem);
    ScheduleEvaluator evaluator(problem);
    testing::RandomSource random(seed);
    Placement placement(problem.op_count());
    for (DeviceId& device : placement) device = DeviceId{random.below(problem.device_count())};
    const double value = evaluator.value(problem.topological_order(), placement);
    for (const DeviceId first : problem.devices()) {
      for (const DeviceId second : problem.devices()) {
        const auto& way = symmetry.way_to({first, second});
        const auto [a, b] = symmetry.representative({first, second});
        EXPECT_EQ(way[a], first);
        EXPECT_EQ(way[b], second);
        Placement image = placement;
        for (DeviceId& device : image) device = way[device];
        EXPECT_NEAR(evaluator.value(problem.topological_order(), image), value, 1e-9 * value);
      }
    }
  }
}

// Two sets of cores are told apart by their sizes and by the smallest set that holds both, with one
// more case where one of them holds the other.
TEST(DeviceSymmetry, LeavesFewPairsOfNestedSets) {
  const auto nested = [](std::size_t cores) {
    return Problem(generate({.family = GraphFamily::chain, .ops = 4, .shared_cores = cores}));
  };
  EXPECT_EQ(representatives(nested(2)), 5U);    // of 9
  EXPECT_EQ(representatives(nested(4)), 14U);   // of 49
  EXPECT_EQ(representatives(nested(16)), 55U);  // of 961
}

TEST(DeviceSymmetry, KeepsPinnedDevices) {
  testing::RandomProblemOptions options;
  ProblemDraft draft = testing::core_set_draft(options, 1);
  const std::size_t without = representatives(Problem(ProblemDraft(draft)));
  draft.ops.front().pinned_to = DeviceId{0};
  const Problem problem(std::move(draft));
  EXPECT_GT(representatives(problem), without);
  const DeviceSymmetry symmetry(problem);
  for (const DeviceId second : problem.devices()) {
    EXPECT_EQ(symmetry.way_to({DeviceId{0}, second})[DeviceId{0}], DeviceId{0});
  }
}

}  // namespace
}  // namespace placewright
