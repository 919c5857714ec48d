#include "evaluate/memory.h"

#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "support/random_problem.h"
#include "support/records.h"

namespace placewright {
namespace {

using testing::device_record;
using testing::model_record;
using testing::op_record;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;

ProblemDraft two_ops_and_a_shared_weight() {
  ProblemDraft draft;
  draft.cluster.kinds = {{"gpu", false}};
  draft.cluster.devices = {device_record("a", KindId{0}, 44), device_record("b", KindId{0}, 30)};
  draft.models = {model_record("model")};
  draft.ops = {op_record("u", {1}, 10), op_record("v", {1}, 14)};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  draft.shared_weights = {{"w", 20, {OpId{0}, OpId{1}}}};
  return draft;
}

// By the definition: sets of weights, no counts.
Table<DeviceId, double> resident_by_definition(const Problem& problem, const Placement& placement) {
  Table<DeviceId, double> bytes(problem.device_count(), 0.0);
  std::map<DeviceId, std::set<WeightId>> weights;
  for (const OpId op : problem.ops()) {
    if (!placement[op].valid()) continue;
    bytes[placement[op]] += problem.memory(op);
    for (const WeightId weight : problem.shared_weights(op)) weights[placement[op]].insert(weight);
  }
  for (const auto& [device, held] : weights) {
    for (const WeightId weight : held) bytes[device] += problem.shared_weight_bytes(weight);
  }
  return bytes;
}

TEST(MemoryLedger, CountsASharedWeightOncePerDevice) {
  const Problem problem(two_ops_and_a_shared_weight());
  MemoryLedger ledger(problem);
  const OpId u{0};
  const OpId v{1};
  const DeviceId a{0};
  const DeviceId b{1};
  EXPECT_EQ(ledger.growth(u, a), 30);
  ledger.add(u, a);
  EXPECT_EQ(ledger.growth(v, a), 14);
  EXPECT_TRUE(ledger.fits(v, a)) << "44 of 44";
  EXPECT_FALSE(ledger.fits(v, b)) << "34 of 30";
  ledger.add(v, a);
  EXPECT_EQ(ledger.used(a), 44);
  EXPECT_EQ(ledger.free(a), 0);
  ledger.remove(u, a);
  EXPECT_EQ(ledger.used(a), 34);
  ledger.remove(v, a);
  EXPECT_EQ(ledger.used(a), 0);
}

TEST(MemoryLedger, ToleratesRoundingOnly) {
  EXPECT_TRUE(within_memory(1e9 + 0.5, 1e9));
  EXPECT_FALSE(within_memory(1e9 + 2, 1e9));
  EXPECT_TRUE(within_memory(0, 0));
  EXPECT_FALSE(within_memory(1, 0));
  EXPECT_TRUE(within_memory(1e300, kInfinity));
}

TEST(MemoryLedger, FollowsOpsAndGroupsThatComeAndGo) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProblemOptions options;
    options.ops = 14;
    options.binding_memory = true;
    options.shared_weights = seed % 3 != 0;
    options.colocation = true;
    const Problem problem(random_draft(options, seed));
    RandomSource random(seed);
    Placement placement(problem.op_count());
    MemoryLedger ledger(problem);
    for (int step = 0; step < 300; ++step) {
      const GroupId group{random.below(problem.group_count())};
      const DeviceId to{random.below(problem.device_count())};
      const DeviceId from = placement[problem.group_ops(group).front()];
      if (from == to) continue;
      if (from.valid()) ledger.remove_group(group, from);
      for (const OpId op : problem.group_ops(group)) placement[op] = to;
      const auto expected = resident_by_definition(problem, placement);
      const bool fits = within_memory(expected[to], problem.device(to).memory);
      EXPECT_EQ(ledger.fits_group(group, to), fits);
      ledger.add_group(group, to);
      for (const DeviceId device : problem.devices()) {
        ASSERT_NEAR(ledger.used(device), expected[device], 1e-9 * (1 + expected[device]));
        ASSERT_NEAR(resident_memory(problem, placement)[device], expected[device],
                    1e-9 * (1 + expected[device]));
      }
      ASSERT_EQ(ledger.within(), memory_fits(problem, placement));
    }
  }
}

}  // namespace
}  // namespace placewright
