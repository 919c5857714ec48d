#include "coarsen/blocks.h"

#include <gtest/gtest.h>

#include "evaluate/contiguity.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using testing::RandomProblemOptions;
using testing::RandomSource;

RandomProblemOptions training() {
  RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.interconnect = InterconnectKind::host;
  options.ops = 14;
  options.devices = 4;
  options.training = options.colocation = true;
  return options;
}

TEST(Blocks, HoldEveryOpOnceAndNeverSplitAGroup) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem(testing::random_draft(training(), seed));
    const Blocks blocks = blocks_of(problem);
    std::size_t ops = 0;
    for (const BlockId block : blocks.keys()) ops += blocks.ops[block].size();
    EXPECT_EQ(ops, problem.op_count());
    for (const OpId op : problem.ops()) {
      const OpId first = problem.group_ops(problem.group(op)).front();
      EXPECT_EQ(blocks.block_of[op], blocks.block_of[first]);
    }
  }
}

TEST(Blocks, AscendAlongEdgesWhereContiguityIsAsked) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem(testing::random_draft(training(), seed));
    const Blocks blocks = blocks_of(problem);
    for (const BlockId block : blocks.keys()) {
      for (const BlockId next : blocks.successors[block]) EXPECT_LT(block, next) << seed;
    }
  }
}

// The promise of the header: cutting the order anywhere gives a contiguous placement.
TEST(Blocks, CutAnywhereAreContiguous) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem(testing::random_draft(training(), seed));
    const Blocks blocks = blocks_of(problem);
    RandomSource random(seed);
    Placement placement(problem.op_count());
    std::size_t device = 0;
    for (const BlockId block : blocks.keys()) {
      if (device + 1 < problem.device_count() && random.chance(0.3)) ++device;
      for (const OpId op : blocks.ops[block]) placement[op] = DeviceId{device};
    }
    EXPECT_TRUE(jointly_contiguous(problem, placement)) << seed;
  }
}

// Blocks are no larger than they must be: two blocks next to each other can be on two devices.
TEST(Blocks, SeparateWhereSomeContiguousPlacementDoes) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomProblemOptions options = training();
    options.ops = 8;
    options.devices = 2;
    const Problem problem(testing::random_draft(options, seed));
    const Blocks blocks = blocks_of(problem);
    // Every pair of ops that some contiguous placement on two devices separates is in two blocks.
    for (std::size_t bits = 0; bits < (std::size_t{1} << problem.group_count()); ++bits) {
      Placement placement(problem.op_count());
      for (const OpId op : problem.ops()) {
        placement[op] = DeviceId{(bits >> problem.group(op).index()) & 1U};
      }
      if (!jointly_contiguous(problem, placement)) continue;
      for (const OpId a : problem.ops()) {
        for (const OpId b : problem.ops()) {
          if (placement[a] != placement[b]) {
            EXPECT_NE(blocks.block_of[a], blocks.block_of[b]) << seed;
          }
        }
      }
    }
  }
}

TEST(Blocks, FollowAChainToItsEnd) {
  // Two chains a0 -> a1 -> a2 and b0 -> b1 -> b2 side by side.
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "d", .kind = KindId{0}}};
  draft.models = {{.name = "m"}};
  for (const char* name : {"a0", "b0", "a1", "b1", "a2", "b2"}) {
    draft.ops.push_back({.name = name, .time = {1}});
  }
  for (std::size_t i = 0; i < 4; ++i) {
    draft.tensors.push_back({.producer = OpId{i}, .consumers = {OpId{i + 2}}});
  }
  const Problem problem(draft);
  const Blocks blocks = blocks_of(problem);
  std::string order;
  for (const BlockId block : blocks.keys()) order += problem.op(blocks.ops[block].front()).name;
  EXPECT_EQ(order, "a0a1a2b0b1b2");
}

}  // namespace
}  // namespace placewright
