#include "tuning/correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/schedule.h"

namespace placewright {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// a ─► b ─► c, a ─► c; a and c on the first device, b on the second; both of one kind.
ProblemDraft chain_draft() {
  ProblemDraft draft;
  draft.name = "chain";
  draft.unit = TimeUnit::milliseconds;
  draft.cluster.kinds = {{"cpu-1"}};
  draft.cluster.devices = {{"cpu:0", KindId{0}}, {"cpu:1", KindId{0}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 0, 1e6}, {DeviceId{1}, DeviceId{0}, 0, 1e6}};
  draft.models = {{"chain"}};
  for (const char* name : {"a", "b", "c"}) {
    Op op;
    op.name = name;
    op.time = {10};
    draft.ops.push_back(op);
  }
  draft.tensors = {{"a", OpId{0}, {OpId{1}, OpId{2}}, 8}, {"b", OpId{1}, {OpId{2}}, 8}};
  return draft;
}

Problem chain_problem() {
  return Problem(chain_draft());
}

// The same on a core, and on both, that share their memory; each tensor has its own price.
Problem chain_on_core_sets() {
  ProblemDraft draft = chain_draft();
  draft.cluster = {};
  draft.cluster.kinds = {{"cpu-1"}, {"cpu-2"}};
  draft.cluster.resources = {{"core 0", 1}, {"core 1", 1}};
  draft.cluster.spaces = {{.name = "memory"}};
  const ResourceUse first{ResourceId{0}, 1};
  const ResourceUse second{ResourceId{1}, 1};
  draft.cluster.devices = {
      {.name = "cpu:0", .kind = KindId{0}, .uses = {first}, .space = SpaceId{0}},
      {.name = "cpu:0-1", .kind = KindId{1}, .uses = {first, second}, .space = SpaceId{0}}};
  for (Op& op : draft.ops) op.time = {10, 6};
  draft.tensors[0].cuts = {{KindId{0}, 0.4, 0.1}, {KindId{1}, 0.3, 0.2}};
  draft.tensors[1].cuts = {{KindId{0}, 0.5, 0.6}, {KindId{1}, 0.2, 0.7}};
  return Problem(std::move(draft));
}

std::vector<Segment> three_segments() {
  std::vector<Segment> segments(3);
  segments[0].devices = {DeviceId{0}};
  segments[0].ops = {OpId{0}};
  segments[1].devices = {DeviceId{1}};
  segments[1].ops = {OpId{1}};
  segments[2].devices = {DeviceId{0}};
  segments[2].ops = {OpId{2}};
  return segments;
}

TEST(Correction, KnowsWhatEachSegmentBears) {
  // a is handed to the second device and read there; b is handed back; a is read at home for
  // nothing.
  EXPECT_THAT(
      overheads_of(chain_on_core_sets(), three_segments()),
      ElementsAre(DoubleNear(0.4, 1e-12), DoubleNear(0.2 + 0.2, 1e-12), DoubleNear(0.6, 1e-12)));
  EXPECT_THAT(overheads_of(chain_problem(), three_segments()), ElementsAre(0, 0, 0));
}

TEST(Correction, ExplainsLongerSegmentsByTheirTransfers) {
  const ProblemDraft draft = corrected(chain_problem(), three_segments(), {11.0, 12.0, 11.0});
  for (const Device& device : draft.cluster.devices) {
    EXPECT_NEAR(device.send_overhead, 1, 1e-12);
    EXPECT_NEAR(device.receive_overhead, 1, 1e-12);
  }
  for (const Op& op : draft.ops) EXPECT_THAT(op.time, ElementsAre(DoubleNear(10, 1e-12)));
}

TEST(Correction, CorrectedSegmentsTakeWhatTheyTook) {
  const std::vector<std::optional<double>> measured{9.0, 14.0, 12.0};
  const ProblemDraft draft = corrected(chain_problem(), three_segments(), measured);
  const std::vector<double> transfers{1, 2, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    const double predicted =
        draft.ops[i].time[0] + transfers[i] * draft.cluster.devices[0].send_overhead;
    EXPECT_NEAR(predicted, *measured[i], 1e-9);
  }
  EXPECT_EQ(draft.origin.size(), 1U);
}

TEST(Correction, ScalesTheCutsThatTensorsState) {
  const Problem problem = chain_on_core_sets();
  // On one core the cuts cost 1.5 times what was stated, on both cores half of it.
  const ProblemDraft draft = corrected(problem, three_segments(), {10.6, 6.2, 10.9});
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    const std::vector<CutOverhead>& stated = problem.draft().tensors[i].cuts;
    const std::vector<CutOverhead>& fitted = draft.tensors[i].cuts;
    EXPECT_NEAR(fitted[0].send, 1.5 * stated[0].send, 1e-9);
    EXPECT_NEAR(fitted[0].receive, 1.5 * stated[0].receive, 1e-9);
    EXPECT_NEAR(fitted[1].send, 0.5 * stated[1].send, 1e-9);
    EXPECT_NEAR(fitted[1].receive, 0.5 * stated[1].receive, 1e-9);
  }
  for (const Op& op : draft.ops) {
    EXPECT_THAT(op.time, ElementsAre(DoubleNear(10, 1e-9), DoubleNear(6, 1e-9)));
  }
}

TEST(Correction, CorrectedSegmentsWithCutsTakeWhatTheyTook) {
  // The last is far off, so that the cuts alone would have to cost many times what was stated.
  const std::vector<std::optional<double>> measured{9.0, 7.0, 15.0};
  const Problem after(corrected(chain_on_core_sets(), three_segments(), measured));
  const Placement placement(std::vector{DeviceId{0}, DeviceId{1}, DeviceId{0}});
  const Table<OpId, double> durations = op_durations(after, placement);
  for (const OpId op : after.ops()) EXPECT_NEAR(durations[op], *measured[op.index()], 1e-9);
  EXPECT_NEAR(after.send_overhead(TensorId{0}, DeviceId{0}), 0.4 * kLargestFactor, 1e-9);
}

TEST(Correction, NothingIsChangedWithoutATimeAndNothingBeyondTheLargestFactor) {
  const ProblemDraft untouched =
      corrected(chain_problem(), three_segments(), {std::nullopt, std::nullopt, std::nullopt});
  for (const Op& op : untouched.ops) EXPECT_EQ(op.time.front(), 10);
  const ProblemDraft wild = corrected(chain_problem(), three_segments(), {1.0, std::nullopt, 1.0});
  EXPECT_EQ(wild.ops[0].time.front(), 10 / kLargestFactor);
  EXPECT_EQ(wild.ops[1].time.front(), 10);
}

}  // namespace
}  // namespace placewright
