#include "coarsen/deletion.h"

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "bounds/segments.h"
#include "coarsen/cut_nodes.h"
#include "support/brute_force.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

ProblemDraft two_devices() {
  ProblemDraft draft;
  draft.cluster.kinds = {{"x"}, {"y"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}}, {.name = "d1", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  return draft;
}

void connect(ProblemDraft& draft, std::size_t from, std::size_t to) {
  draft.tensors.push_back(
      {.producer = OpId{from}, .consumers = {OpId{to}}, .link_times = {0, 1, 1, 0}});
}

// A trunk of six ops, and one op that runs beside all but its ends.
TEST(Deletion, LeavesOutWhatRunsBesideTheTrunk) {
  ProblemDraft draft = two_devices();
  for (int i = 0; i < 7; ++i) draft.ops.push_back({.name = std::to_string(i), .time = {1, 2}});
  for (std::size_t i = 0; i < 5; ++i) connect(draft, i, i + 1);
  connect(draft, 0, 6);
  connect(draft, 6, 5);
  const Problem problem(draft);
  EXPECT_EQ(cut_nodes(problem).size(), 2U);
  const std::vector<Remainder> rests = remainders(problem);
  ASSERT_EQ(rests.size(), 1U);
  EXPECT_EQ(rests[0].problem.op_count(), 6U);
  EXPECT_EQ(cut_nodes(rests[0].problem).size(), 6U);
  EXPECT_EQ(rests[0].original[5], OpId{5});
}

// The trunk leads through an op that runs beside much else: what is left keeps its order.
TEST(Deletion, KeepsPrecedenceThroughOpsLeftOut) {
  ProblemDraft draft = two_devices();
  // 0 -> 1 -> 2 -> 3 -> 4, and 0 -> 5 -> 6 -> 4 beside it, where 5 and 6 are short.
  for (int i = 0; i < 7; ++i) {
    draft.ops.push_back({.name = std::to_string(i), .time = {i < 5 ? 4.0 : 1.0, 8}});
  }
  for (std::size_t i = 0; i < 4; ++i) connect(draft, i, i + 1);
  connect(draft, 0, 5);
  connect(draft, 5, 6);
  connect(draft, 6, 4);
  const Problem problem(draft);
  const std::vector<Remainder> rests = remainders(problem);
  ASSERT_FALSE(rests.empty());
  for (const Remainder& rest : rests) {
    for (const OpId op : rest.problem.ops()) {
      const bool first = rest.original[op.index()] == OpId{0};
      EXPECT_EQ(rest.problem.predecessors(op).empty(), first);
    }
  }
}

TEST(Deletion, TensorsThatPassOverAHubAreDropped) {
  ProblemDraft draft = two_devices();
  for (int i = 0; i < 3; ++i) draft.ops.push_back({.name = std::to_string(i), .time = {1, 2}});
  connect(draft, 0, 1);
  connect(draft, 1, 2);
  connect(draft, 0, 2);
  const Problem problem(draft);
  EXPECT_EQ(cut_nodes(problem).size(), 2U);
  const std::vector<Remainder> rests = remainders(problem);
  ASSERT_EQ(rests.size(), 1U);
  EXPECT_EQ(rests[0].problem.op_count(), 3U);
  EXPECT_EQ(cut_nodes(rests[0].problem).size(), 3U);
}

TEST(Deletion, AnEncoderAndItsDecoderSplitAtEveryLayer) {
  const Problem problem(generate(
      {.family = GraphFamily::encoder_decoder, .ops = 334, .kinds = 4, .communication = 16}));
  EXPECT_LT(cut_nodes(problem).size(), 20U);
  const std::vector<Remainder> rests = remainders(problem);
  ASSERT_FALSE(rests.empty());
  EXPECT_GT(cut_nodes(rests.back().problem).size(), 40U);
  double best = 0;
  for (const Remainder& rest : rests) best = std::max(best, segment_bound(rest.problem));
  EXPECT_GT(best, 1.05 * segment_bound(problem));
}

TEST(Deletion, SeveralModelsAreLeftAlone) {
  testing::RandomProblemOptions options;
  options.models = 2;
  EXPECT_TRUE(remainders(Problem(testing::random_draft(options, 1))).empty());
}

struct Rules {
  InterconnectKind interconnect;
  bool sharing;
};

class DeletionAgainstBruteForce : public ::testing::TestWithParam<Rules> {};

TEST_P(DeletionAgainstBruteForce, NeverRaisesTheOptimum) {
  testing::RandomProblemOptions options;
  options.interconnect = GetParam().interconnect;
  options.ops = 5;
  options.devices = 2;
  options.edge_probability = 0.5;
  options.binding_memory = options.colocation = options.lanes = options.overheads = true;
  options.shared_weights = options.zero_times = options.unsupported = options.pins = true;
  options.resources = options.spaces = options.cuts = GetParam().sharing;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Problem problem(testing::random_draft(options, seed));
    const auto least = testing::brute_force_value(problem);
    if (!least) continue;
    for (const Remainder& rest : remainders(problem)) {
      const auto of_rest = testing::brute_force_value(rest.problem);
      ASSERT_TRUE(of_rest) << "seed " << seed;
      EXPECT_LE(*of_rest, *least * (1 + 1e-9)) << "seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

INSTANTIATE_TEST_SUITE_P(AllRules, DeletionAgainstBruteForce,
                         ::testing::Values(Rules{InterconnectKind::links, false},
                                           Rules{InterconnectKind::host, false},
                                           Rules{InterconnectKind::links, true},
                                           Rules{InterconnectKind::host, true}));

}  // namespace
}  // namespace placewright
