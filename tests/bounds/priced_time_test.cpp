#include "bounds/priced_time.h"

#include <gtest/gtest.h>

#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

struct Rules {
  InterconnectKind interconnect;
  bool congestion;
  bool sharing;
};

class PricedTimeAgainstBruteForce : public ::testing::TestWithParam<Rules> {};

// Every step of prices proves its bound, whatever the bins and the horizon.
TEST_P(PricedTimeAgainstBruteForce, IsNeverAboveTheOptimum) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.interconnect = GetParam().interconnect;
  options.congestion = GetParam().congestion;
  options.models = 2;
  options.ops = 5;
  options.devices = 2;
  options.lanes = options.overheads = options.zero_times = options.unsupported = true;
  options.binding_memory = options.colocation = options.pins = true;
  options.resources = options.spaces = options.cuts = GetParam().sharing;
  int compared = 0;
  int raised = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem(testing::random_draft(options, seed));
    const auto least = testing::brute_force_value(problem);
    if (!least || *least == 0) continue;
    ++compared;
    for (const auto& [horizon, bins] : {std::pair{0.3, 7}, {1.0, 40}, {3.0, 25}}) {
      PricedTime prices(problem, horizon * *least, static_cast<std::size_t>(bins));
      const double first = prices.step(1.1 * *least);
      double best = first;
      EXPECT_LE(first, *least * (1 + 1e-9)) << "seed " << seed;
      for (int step = 0; step < 20; ++step) {
        const double bound = prices.step(1.1 * *least);
        EXPECT_LE(bound, *least * (1 + 1e-9)) << "seed " << seed << ", step " << step;
        best = std::max(best, bound);
      }
      raised += best > first * (1 + 1e-6) ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(raised, 20);
}

INSTANTIATE_TEST_SUITE_P(AllRules, PricedTimeAgainstBruteForce,
                         ::testing::Values(Rules{InterconnectKind::links, true, false},
                                           Rules{InterconnectKind::links, false, false},
                                           Rules{InterconnectKind::host, true, false},
                                           Rules{InterconnectKind::links, true, true},
                                           Rules{InterconnectKind::host, true, true}));

// Three chains of one op each want the same device: 1 + 2 + 3. The critical paths say 3, and the work
// of both devices, one of them slow, little more.
TEST(PricedTime, SeesModelsThatWantOneDeviceAtTheSameTime) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{.name = "f", .kind = KindId{0}}, {.name = "s", .kind = KindId{1}}};
  for (std::size_t i = 0; i < 3; ++i) {
    draft.models.push_back({.name = "m" + std::to_string(i)});
    draft.ops.push_back({.name = std::to_string(i), .model = ModelId{i}, .time = {1, 4}});
  }
  const Problem problem(draft);
  PricedTime prices(problem, 3, 300);
  double best = 0;
  for (int step = 0; step < 300; ++step) best = std::max(best, prices.step(6));
  EXPECT_GT(best, 5.8);
  EXPECT_LE(best, 6);
}

}  // namespace
}  // namespace placewright
