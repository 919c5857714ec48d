#include "profiling/cut_cost.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;

TensorKey result_of(std::size_t op) {
  return {op, 0};
}

// Ops that read the results of others, each result of so many bytes.
ModelGraph graph_of(const std::vector<std::pair<std::vector<std::size_t>, double>>& ops) {
  ModelGraph graph;
  for (const auto& [reads, bytes] : ops) {
    GraphOp op;
    for (const std::size_t producer : reads) op.inputs.push_back(result_of(producer));
    op.outputs.push_back({"f32", ElementKind::real, {1}, bytes});
    graph.ops.push_back(std::move(op));
  }
  return graph;
}

TEST(CutCost, ACallIsWhatAllGroupsPayAndAnEntryWhatOneTakesBeyondIt) {
  std::vector<GroupTime> groups;
  for (int i = 1; i <= 20; ++i) groups.push_back({0.1 * i, 0.03 + 1.02 * 0.1 * i});
  groups[7].alone += 0.2;
  const GroupEntries found = entries_of(groups);
  EXPECT_NEAR(found.call, 0.03, 1e-3);
  ASSERT_EQ(found.entries.size(), groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    EXPECT_NEAR(found.entries[i], i == 7 ? 0.2 : 0.0, 5e-3) << i;
  }
}

TEST(CutCost, WithoutGroupsThereIsNothingToPay) {
  const GroupEntries found = entries_of({});
  EXPECT_EQ(found.call, 0);
  EXPECT_TRUE(found.entries.empty());
}

TEST(CutCost, AnEntryIsBorneByWhatTheGroupReads) {
  // 0, 1 and 2 feed 3, which reads most from 0; 4 reads from 3 alone.
  const ModelGraph graph = graph_of({{{}, 700}, {{}, 200}, {{}, 100}, {{0, 1, 2}, 10}, {{3}, 10}});
  const EntriesOfReaders entries =
      entries_of_readers(graph, {{0}, {1}, {2}, {3}, {4}}, {0, 0, 0, 0.5, 0.25});
  EXPECT_NEAR(entries.at(result_of(0)).at(3), 0.5,
              1e-12);  // more than half of it: all of the entry
  EXPECT_NEAR(entries.at(result_of(1)).at(3), 0.2, 1e-12);  // twice its fifth
  EXPECT_NEAR(entries.at(result_of(2)).at(3), 0.1, 1e-12);
  EXPECT_NEAR(entries.at(result_of(3)).at(4), 0.25, 1e-12);
  // Inside a group nothing crosses a border.
  EXPECT_FALSE(
      entries_of_readers(graph, {{0}, {1}, {2}, {3, 4}}, {0, 0, 0, 0.5}).contains(result_of(3)));
}

TEST(CutCost, BothSidesPayACallAndTheReceiverTheEntry) {
  CutCost cost;
  cost.groups.call = 0.02;
  cost.entries = {{result_of(0), 0.1}, {result_of(1), 0}};
  EXPECT_DOUBLE_EQ(cost.send(), 0.02);
  EXPECT_DOUBLE_EQ(cost.receive(result_of(0)), 0.12);
  EXPECT_DOUBLE_EQ(cost.receive(result_of(1)), 0.02);
  EXPECT_DOUBLE_EQ(cost.receive(result_of(2)), 0.02);  // nobody reads it
  EXPECT_DOUBLE_EQ(cost.per_transfer(), 0.09);
}

CutCost cost_of_trials(double missing) {
  CutCost cost;
  cost.groups.call = 0.02;
  for (const std::size_t segments : {2U, 4U, 9U}) {
    CutTrial& trial = cost.trials.emplace_back();
    trial.segments = segments;
    trial.predicted = 10 + cost.groups.call * static_cast<double>(segments - 1);
    trial.time.median = trial.predicted + missing * static_cast<double>(segments - 1);
  }
  return cost;
}

TEST(CutCost, TrialsThatTakeLongerRaiseTheCall) {
  CutCost cost = cost_of_trials(0.1);
  raise_call(cost);
  EXPECT_NEAR(cost.groups.call, 0.12, 1e-12);
  std::vector<double> errors;
  for (const CutTrial& trial : cost.trials) errors.push_back(trial.error());
  EXPECT_THAT(errors, Each(DoubleNear(0, 1e-12)));
}

TEST(CutCost, AWholeModelThatIsFasterThanItsSegmentsIsNoReasonToRaiseTheCall) {
  CutCost cost = cost_of_trials(0);
  for (CutTrial& trial : cost.trials) trial.time.median += 0.5;
  raise_call(cost);
  EXPECT_NEAR(cost.groups.call, 0.02, 1e-3);
}

TEST(CutCost, TrialsThatTakeLessDoNotMakeACallCheaper) {
  CutCost cost = cost_of_trials(-0.1);
  raise_call(cost);
  EXPECT_DOUBLE_EQ(cost.groups.call, 0.02);
  EXPECT_GT(cost.error(), 0.01);
}

TEST(CutCost, RandomSegmentsHoldEveryOpOnce) {
  std::vector<OpGroup> groups;
  for (std::size_t i = 0; i < 30; ++i) groups.push_back({2 * i, 2 * i + 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<OpGroup> segments = random_segments(groups, 7, seed);
    EXPECT_EQ(segments.size(), 7U);
    OpGroup all;
    for (const OpGroup& segment : segments) all.insert(all.end(), segment.begin(), segment.end());
    ASSERT_EQ(all.size(), 60U);
    for (std::size_t op = 0; op < all.size(); ++op) EXPECT_EQ(all[op], op);
  }
}

}  // namespace
}  // namespace placewright
