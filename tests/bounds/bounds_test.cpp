#include "bounds/bounds.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "bounds/critical_path.h"
#include "bounds/segments.h"
#include "bounds/work.h"
#include "evaluate/schedule.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::RandomProblemOptions;

std::vector<RandomProblemOptions> variants() {
  std::vector<RandomProblemOptions> all;
  for (const auto objective :
       {Objective::latency, Objective::total_completion, Objective::throughput}) {
    for (const auto interconnect : {InterconnectKind::links, InterconnectKind::host}) {
      RandomProblemOptions options;
      options.objective = objective;
      options.interconnect = interconnect;
      options.models = objective == Objective::total_completion ? 2 : 1;
      options.ops = 5;
      options.devices = 2;
      options.binding_memory = options.colocation = options.lanes = options.overheads = true;
      options.shared_weights = options.zero_times = true;
      options.training = objective == Objective::throughput;
      all.push_back(options);
      options.cuts = true;
      all.push_back(options);
    }
  }
  // Blocks that are comparable with all others, and kinds that differ from op to op.
  RandomProblemOptions chains;
  chains.objective = Objective::throughput;
  chains.ops = 6;
  chains.edge_probability = 0.8;
  chains.unsupported = true;
  all.push_back(chains);
  return all;
}

class BoundsBelowBruteForce : public ::testing::TestWithParam<RandomProblemOptions> {};

TEST_P(BoundsBelowBruteForce, OnRandomProblems) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Problem problem(testing::random_draft(GetParam(), seed));
    const auto least = testing::brute_force_value(problem);
    if (!least) continue;
    for (const Bound& bound : lower_bounds(problem)) {
      EXPECT_LE(bound.value, *least * (1 + 1e-9)) << bound.name << ", seed " << seed;
    }
  }
}

// Whenever they are stopped: the question is answered "no" so many times, then "yes".
TEST_P(BoundsBelowBruteForce, WhenStoppedEarly) {
  RandomProblemOptions options = GetParam();
  options.ops = 12;
  const Problem problem(testing::random_draft(options, 1));
  const double whole = best_lower_bound(problem).lower_bound;
  double before = 0;
  for (int patience = 0; patience < 40; ++patience) {
    int asked = 0;
    const double stopped =
        best_lower_bound(problem, [&] { return asked++ >= patience; }).lower_bound;
    EXPECT_GE(stopped, before);
    EXPECT_LE(stopped, whole);
    before = stopped;
  }
}

INSTANTIATE_TEST_SUITE_P(AllObjectives, BoundsBelowBruteForce, ::testing::ValuesIn(variants()));

// The least value over every placement and every order of the ops: what a plan that shares
// resources can have, if not the least.
double best_of_all_orders(const Problem& problem) {
  ScheduleEvaluator evaluator(problem);
  std::vector<OpId> order(problem.topological_order().begin(), problem.topological_order().end());
  std::ranges::sort(order);
  double best = kInfinity;
  do {
    const auto place = [&](OpId op) { return std::ranges::find(order, op); };
    const bool topological = std::ranges::all_of(problem.ops(), [&](OpId op) {
      return std::ranges::all_of(problem.predecessors(op),
                                 [&](OpId before) { return place(before) < place(op); });
    });
    if (!topological) continue;
    testing::for_each_placement(problem, [&](const Placement& placement) {
      best = std::min(best, evaluator.value(order, placement));
    });
  } while (std::ranges::next_permutation(order).found);
  return best;
}

class BoundsWithSharedResources : public ::testing::TestWithParam<double> {};

TEST_P(BoundsWithSharedResources, AreBelowTheBestOfAllOrders) {
  RandomProblemOptions options;
  options.ops = 5;
  options.devices = 3;
  options.edge_probability = GetParam();
  options.resources = options.spaces = options.cuts = options.overheads = true;
  options.colocation = options.zero_times = true;
  for (const auto objective : {Objective::latency, Objective::total_completion}) {
    options.objective = objective;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
      options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
      const Problem problem(testing::random_draft(options, seed));
      const double least = best_of_all_orders(problem);
      for (const Bound& bound : lower_bounds(problem)) {
        EXPECT_LE(bound.value, least * (1 + 1e-9)) << bound.name << ", seed " << seed;
      }
    }
  }
}

// Many edges make cut nodes.
INSTANTIATE_TEST_SUITE_P(Edges, BoundsWithSharedResources, ::testing::Values(0.1, 0.4, 0.8));

// Two ops between a first and a last one, on a core, another, or both together. The first and the
// last are best on both, the others side by side; handing a tensor over costs twice the overhead.
Problem two_branches_on_two_cores(double ends_on_one, double overhead) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"one"}, {"both"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "memory"}};
  const ResourceUse first{ResourceId{0}, 1};
  const ResourceUse second{ResourceId{1}, 1};
  const auto device = [&](std::string name, std::size_t kind, std::vector<ResourceUse> uses) {
    return Device{.name = std::move(name),
                  .kind = KindId{kind},
                  .send_overhead = overhead,
                  .receive_overhead = overhead,
                  .uses = std::move(uses),
                  .space = SpaceId{0}};
  };
  draft.cluster.devices = {device("0", 0, {first}), device("1", 0, {second}),
                           device("0-1", 1, {first, second})};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "in", .time = {ends_on_one, 6}},
               {.name = "a", .time = {10, 8}},
               {.name = "b", .time = {10, 8}},
               {.name = "out", .time = {ends_on_one, 6}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}},
                   {.producer = OpId{1}, .consumers = {OpId{3}}},
                   {.producer = OpId{2}, .consumers = {OpId{3}}}};
  return Problem(std::move(draft));
}

TEST(SegmentBound, KnowsThatNothingRunsBesideACutNode) {
  const Problem problem = two_branches_on_two_cores(10, 0);
  EXPECT_NEAR(work_bound(problem), 20, 1e-6) << "half of what one core would take";
  EXPECT_NEAR(segment_bound(problem), 22, 1e-5);
  EXPECT_NEAR(best_of_all_orders(problem), 22, 1e-9);
}

TEST(SegmentBound, KnowsWhatTheOverheadsOfCutsCost) {
  const Problem problem = two_branches_on_two_cores(16, 2);
  EXPECT_NEAR(segment_bound(problem), 28, 1e-5) << "all on both cores";
  EXPECT_NEAR(best_of_all_orders(problem), 28, 1e-9);
}

// One op of 6 on either of two devices, and two of 3: the work bound is exact for fractions.
// The accelerator pays 1 for what it sends; the processor reads it from host memory for nothing.
TEST(SegmentBound, KnowsThatTheHostReadsItsMemoryForNothing) {
  ProblemDraft draft;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator", false}, {"cpu", true}};
  draft.cluster.resources = {{"power", 2}};
  draft.cluster.devices = {
      {.name = "accelerator", .kind = KindId{0}, .send_overhead = 1, .uses = {{ResourceId{0}, 1}}},
      {.name = "cpu",
       .kind = KindId{1},
       .send_overhead = 2,
       .receive_overhead = 2,
       .uses = {{ResourceId{0}, 2}}}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "first", .time = {5, 18}},
               {.name = "second", .time = {0, 14}},
               {.name = "last", .time = {9, 0}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .host_time = 3},
                   {.producer = OpId{1}, .consumers = {OpId{2}}}};
  const Problem problem(std::move(draft));
  EXPECT_EQ(best_of_all_orders(problem), 6);
  EXPECT_LE(segment_bound(problem), 6);
}

TEST(WorkBound, SharesTheWorkAmongUnequalDevices) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{.name = "f", .kind = KindId{0}}, {.name = "s", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  for (int i = 0; i < 9; ++i) {
    draft.ops.push_back({.name = std::to_string(i), .time = {1, 2}});
  }
  const Problem problem(draft);
  EXPECT_NEAR(work_bound(problem), 6, 1e-6);  // 6 ops on the fast device, 3 on the slow one
}

TEST(WorkBound, SeesMemoryThatForcesOpsOntoASlowDevice) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"fast"}, {"slow"}};
  draft.cluster.devices = {{.name = "f", .kind = KindId{0}, .memory = 2},
                           {.name = "s", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  for (int i = 0; i < 6; ++i) {
    draft.ops.push_back({.name = std::to_string(i), .memory = 1, .time = {1, 10}});
  }
  const Problem problem(draft);
  EXPECT_NEAR(work_bound(problem), 40, 1e-6);
}

TEST(CriticalPath, PaysForTheTransfersThatNoChoiceAvoids) {
  // a runs on d0 only, b on d1 only.
  ProblemDraft draft;
  draft.cluster.kinds = {{"x"}, {"y"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}}, {.name = "d1", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "a", .time = {2, kUnsupported}}, {.name = "b", .time = {kUnsupported, 3}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .link_times = {0, 5, 5, 0}}};
  const Problem problem(draft);
  EXPECT_EQ(critical_paths(problem)[ModelId{0}], 10);
}

}  // namespace
}  // namespace placewright
