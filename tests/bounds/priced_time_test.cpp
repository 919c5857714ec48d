#include "bounds/priced_time.h"

#include <gtest/gtest.h>

#include "bounds/bounds.h"
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
      PricedTime prices(problem, 1.1 * *least, horizon * *least, static_cast<std::size_t>(bins));
      const double first = prices.step();
      double best = first;
      EXPECT_LE(first, *least * (1 + 1e-9)) << "seed " << seed;
      for (int step = 0; step < 20; ++step) {
        const double bound = prices.step();
        EXPECT_LE(bound, *least * (1 + 1e-9)) << "seed " << seed << ", step " << step;
        best = std::max(best, bound);
      }
      raised += best > first * (1 + 1e-6) ? 1 : 0;
      PricedTime finer(problem, 1.1 * *least, horizon * *least, static_cast<std::size_t>(4 * bins));
      finer.take_prices(prices, 4);
      for (int step = 0; step < 5; ++step) {
        EXPECT_LE(finer.step(), *least * (1 + 1e-9)) << "seed " << seed << ", finer step " << step;
      }
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

// Three chains of one op each want the same device: 1 + 2 + 3. The critical paths say 3, and the
// work of both devices, one of them slow, little more.
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
  PricedTime prices(problem, 6, 3, 300);
  double best = 0;
  for (int step = 0; step < 300; ++step) best = std::max(best, prices.step());
  EXPECT_GT(best, 5.8);
  EXPECT_LE(best, 6);
}

TEST(PricedTime, IsNeverAboveTheOptimumOnSetsOfCores) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.ops = 4;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    options.models = 2 + seed % 3;
    const Problem problem(testing::core_set_draft(options, seed));
    const auto least = testing::brute_force_value(problem);
    ASSERT_TRUE(least);
    for (const double horizon : {0.4, 1.0}) {
      PricedTime prices(problem, 1.05 * *least, horizon * *least, 60);
      for (int step = 0; step < 25; ++step) {
        EXPECT_LE(prices.step(), *least * (1 + 1e-9)) << "seed " << seed << ", step " << step;
      }
    }
  }
}

// Three models of one op each, for 4 on either of two cores or 2 on both: 2 + 4 + 6, or 4 + 4 + 6.
// If each core and both together had time of their own, the three could run side by side: 2 + 4 +
// 4.
TEST(PricedTime, SeesThatSetsOfCoresShareThem) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"one"}, {"both"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "memory"}};
  const ResourceUse first{ResourceId{0}, 1};
  const ResourceUse second{ResourceId{1}, 1};
  draft.cluster.devices = {
      {.name = "0", .kind = KindId{0}, .uses = {first}, .space = SpaceId{0}},
      {.name = "1", .kind = KindId{0}, .uses = {second}, .space = SpaceId{0}},
      {.name = "0-1", .kind = KindId{1}, .uses = {first, second}, .space = SpaceId{0}}};
  for (std::size_t i = 0; i < 3; ++i) {
    draft.models.push_back({.name = std::to_string(i)});
    draft.ops.push_back({.name = std::to_string(i), .model = ModelId{i}, .time = {4, 2}});
  }
  const Problem problem(draft);
  PricedTime prices(problem, 12, 6, 300);
  double best = 0;
  for (int step = 0; step < 300; ++step) best = std::max(best, prices.step());
  EXPECT_GT(best, 11.5);
  EXPECT_LE(best, 12);
}

// Rounding takes up to a bin off every op, so the same prices prove more in smaller bins.
TEST(PricedTime, ProvesMoreWithTheSamePricesInSmallerBins) {
  testing::RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.models = 3;
  options.ops = 40;
  options.devices = 3;
  const Problem problem(testing::random_draft(options, 1));
  const double value = 1.3 * best_lower_bound(problem).lower_bound;  // as if a plan had it
  PricedTime coarse(problem, value, value / 2, 100);
  for (int step = 0; step < 30; ++step) (void)coarse.step();
  PricedTime fine(problem, value, value / 2, 400);
  fine.take_prices(coarse, 4);
  const double bound = coarse.step();
  EXPECT_GT(bound, 0);
  EXPECT_GT(fine.step(), bound);
}

// Both models begin on one device and end on two readers of what was made there: one that takes no
// time, and one that takes 3 on a device of its own. The tree keeps the first wait only, and with
// it the long readers could both start at 1.
TEST(PricedTime, PricesTheWaitsThatTheTreeLeavesOut) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"first"}, {"second"}, {"third"}};
  for (std::size_t i = 0; i < 3; ++i) {
    draft.cluster.devices.push_back({.name = std::to_string(i), .kind = KindId{i}});
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string name = std::to_string(i);
    const ModelId model{i};
    std::vector<double> alone(3, kUnsupported);
    alone[1 + i] = 3;
    draft.models.push_back({.name = name});
    draft.ops.push_back(
        {.name = name + " made", .model = model, .time = {1, kUnsupported, kUnsupported}});
    draft.ops.push_back({.name = name + " short", .model = model, .time = {0, 0, 0}});
    draft.ops.push_back({.name = name + " long", .model = model, .time = alone});
    draft.tensors.push_back(
        {.producer = OpId{3 * i}, .consumers = {OpId{3 * i + 1}, OpId{3 * i + 2}}});
  }
  for (std::size_t from = 0; from < 3; ++from) {
    for (std::size_t to = 0; to < 3; ++to) {
      if (from != to) draft.cluster.links.push_back({DeviceId{from}, DeviceId{to}, 0, kInfinity});
    }
  }
  const Problem problem(draft);
  PricedTime prices(problem, 9, 5, 500);
  double best = 0;
  for (int step = 0; step < 300; ++step) best = std::max(best, prices.step());
  EXPECT_GT(best, 8.9);
  EXPECT_LE(best, 9);
}

}  // namespace
}  // namespace placewright
