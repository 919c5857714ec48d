#include "tuning/correction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// a ─► b ─► c, a ─► c; a and c on the first device, b on the second; both of one kind.
Problem chain_problem() {
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

TEST(Correction, CountsTransfersAtBothEnds) {
  // a is sent to the second device and read there; b is sent back; a is read at home for nothing.
  EXPECT_THAT(transfers_of(chain_problem(), three_segments()), ElementsAre(1, 2, 1));
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
