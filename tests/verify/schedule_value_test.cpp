// Schedules worked out by hand: what the verifier accepts and what it says they are worth.

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "samples.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

std::vector<std::string> codes_of(const Sample& sample) {
  std::vector<std::string> codes;
  for (const Violation& violation : verify(Problem(sample.draft), sample.plan)) {
    codes.emplace_back(name_of(violation.code));
  }
  return codes;
}

double value_of(const Sample& sample) {
  return verified_value(Problem(sample.draft), sample.plan);
}

TEST(ScheduleValue, MakespanIgnoresWhatThePlanStates) {
  Sample sample = links_schedule();
  sample.plan.value = 1;
  EXPECT_DOUBLE_EQ(value_of(sample), 10);
  sample.plan.schedule.reset();
  EXPECT_EQ(value_of(sample), kInfinity);
  EXPECT_DOUBLE_EQ(value_of(host_schedule()), 9);
}

TEST(ScheduleValue, TotalCompletionWeighsModelsFromTheirArrival) {
  Sample sample = links_schedule();
  sample.draft.objective = Objective::total_completion;
  sample.draft.models = {{"first", 0, 2, {}}, {"second", 4, 3, {}}, {"empty", 7, 5, {}}};
  sample.draft.ops[4].model = ModelId{1};  // v, 5-6
  sample.plan.value = 2 * 10 + 3 * (6 - 4);
  EXPECT_DOUBLE_EQ(value_of(sample), 26);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(ScheduleValue, WithoutCongestionTransfersMayOverlap) {
  Sample sample = links_schedule();
  sample.draft.rules.congestion = false;
  sample.plan.schedule->transfers[2] = direct(2, 0, 1, 5, 7);
  sample.plan.schedule->start[OpId{3}] = 7;
  sample.plan.schedule->end[OpId{3}] = 8;
  sample.plan.value = 8;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// b sends t3 to a while a sends t1 and t2 to b: in and out are separate ports.
TEST(ScheduleValue, PortsAreFullDuplex) {
  Sample sample = links_schedule();
  sample.draft.tensors.push_back(tensor(2, {4}, 8));
  sample.plan.schedule->transfers.push_back(direct(4, 1, 0, 6, 8));
  sample.plan.schedule->start[OpId{4}] = 8;
  sample.plan.schedule->end[OpId{4}] = 9;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(ScheduleValue, ZeroLengthOccupiesNothing) {
  Sample sample = links_schedule();
  sample.draft.ops[4].time = {0, 0};                               // v in the middle of y
  sample.draft.tensors[2].link_times = std::vector<double>(9, 0);  // t2 while t1 travels
  sample.plan.schedule->start[OpId{4}] = sample.plan.schedule->end[OpId{4}] = 3;
  sample.plan.schedule->transfers[2] = direct(2, 0, 1, 6, 6);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(ScheduleValue, LanesRunOpsAtOnce) {
  Sample sample = links_schedule();
  sample.plan.schedule->start[OpId{4}] = 3;
  sample.plan.schedule->end[OpId{4}] = 4;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("device-overlap"));
  sample.draft.cluster.devices[0].lanes = 2;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// x sends one tensor (0.5 more), y two (1 more); on b the tensor of x is received by z, and of the
// two from y and none from z by w (0.25 each).
TEST(ScheduleValue, OverheadsBelongToProducerAndFirstConsumer) {
  Sample sample = links_schedule();
  sample.draft.cluster.devices[0].send_overhead = 0.5;
  sample.draft.cluster.devices[1].receive_overhead = 0.25;
  sample.draft.cluster.devices[1].send_overhead = 100;     // b sends nothing
  sample.draft.cluster.devices[0].receive_overhead = 100;  // a receives nothing
  sample.plan.schedule =
      Schedule{Table<OpId, double>(std::vector<double>{0, 2.5, 4.5, 10.5, 6.5}),
               Table<OpId, double>(std::vector<double>{2.5, 6.5, 6.75, 12, 7.5}),
               {direct(0, 0, 1, 2.5, 4.5), direct(1, 0, 1, 6.5, 8.5), direct(2, 0, 1, 8.5, 10.5)}};
  sample.plan.value = 12;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// The tensor of x goes to both readers on b once; the first in the graph pays for receiving it.
TEST(ScheduleValue, OnlyTheFirstConsumerPaysForReceiving) {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.devices = {{"a", KindId{0}}, {"b", KindId{0}}};
  draft.cluster.devices[1].receive_overhead = 1;
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1, kInfinity}};
  draft.models = {{"model", 0, 1, {}}};
  // z has the smaller number, but comes after y.
  draft.ops = {op("x", {1}), op("z", {1}), op("y", {1})};
  draft.tensors = {tensor(0, {1, 2}, 4), tensor(2, {1}, 4)};
  sample.plan.placement = placed({0, 1, 1});
  sample.plan.schedule = Schedule{Table<OpId, double>(std::vector<double>{0, 4, 2}),
                                  Table<OpId, double>(std::vector<double>{1, 5, 4}),
                                  {direct(0, 0, 1, 1, 2)}};
  sample.plan.value = 5;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// From 5 to 6 device a holds v's tensor (16) and t1, t2 (8 each), which are still being sent; t0 is
// gone since y has ended. On b all four tensors are there when w runs, except t0, which z has read.
TEST(ScheduleValue, PeakMemoryCountsTensorsWhileTheyAreAlive) {
  Sample sample = links_schedule();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.tensors.push_back(tensor(4, {}, 16));
  sample.draft.cluster.devices[0].memory = 30 + 32;
  sample.draft.cluster.devices[1].memory = 20 + 24;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.draft.cluster.devices[0].memory = 30 + 31;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("peak-memory-exceeded"));
  sample.draft.cluster.devices[0].memory = 30 + 32;
  sample.draft.cluster.devices[1].memory = 20 + 23;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("peak-memory-exceeded"));
}

TEST(ScheduleValue, HostMemoryIsNotCounted) {
  Sample sample = host_schedule();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.cluster.devices[2].memory = 0;  // its weights are none, its tensors in host memory
  sample.draft.cluster.devices[0].memory = 4;
  sample.draft.cluster.devices[1].memory = 8;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.draft.cluster.devices[1].memory = 7;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("peak-memory-exceeded"));
}

TEST(ScheduleValue, RoundingErrorsAreForgiven) {
  Sample sample = links_schedule();
  sample.plan.schedule->start[OpId{4}] -= 1e-12;
  sample.plan.schedule->transfers[1].start -= 1e-12;
  const double value = sample.plan.value;
  sample.plan.value = value * (1 + 1e-10);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.plan.value = value * (1 + 1e-8);
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("value-wrong"));
}

// v takes half of core 1 and u, on both cores, the other half.
TEST(ScheduleValue, SharesOfAResourceRunAtOnce) {
  Sample sample = shared_cores();
  sample.draft.ops[4].share = {0.5, 1, 1};
  sample.draft.ops[5].share = {1, 0.5, 1};
  sample.plan.schedule->start[OpId{5}] = 7.25;  // y has core 0 until then
  sample.plan.schedule->end[OpId{5}] = 8.75;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.plan.schedule->start[OpId{5}] = 7;
  sample.plan.schedule->end[OpId{5}] = 8.5;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("resource-exceeded"));
}

TEST(ScheduleValue, OpsOfZeroDurationHoldNoResource) {
  Sample sample = shared_cores();
  sample.draft.ops[5].time[1] = 0;
  sample.draft.cluster.devices[2].receive_overhead = 0;
  sample.plan.schedule->start[OpId{5}] = sample.plan.schedule->end[OpId{5}] = 7.5;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// Three host devices, two of them in one space: x on cpu0 hands its tensor over to cpu1 (send 1,
// receive 2), and cpu2 reads it for nothing.
TEST(ScheduleValue, HostDevicesHandOverInsideASpaceOnly) {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"cpu", true}};
  draft.cluster.spaces = {{"node", kInfinity}};
  draft.cluster.devices = {{"cpu0", KindId{0}}, {"cpu1", KindId{0}}, {"cpu2", KindId{0}}};
  for (Device& device : draft.cluster.devices) {
    device.send_overhead = 1;
    device.receive_overhead = 2;
  }
  draft.cluster.devices[0].space = draft.cluster.devices[1].space = SpaceId{0};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("x", {1}), op("y", {1}), op("z", {1})};
  draft.tensors = {tensor(0, {1, 2}, 4, 9)};
  sample.plan.placement = placed({0, 1, 2});
  sample.plan.schedule = Schedule{Table<OpId, double>(std::vector<double>{0, 2, 2}),
                                  Table<OpId, double>(std::vector<double>{2, 5, 3}),
                                  {}};
  sample.plan.value = 5;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// Two accelerators of one space read what a third sends: in once, to the device of y, which comes
// first; both take it in.
TEST(ScheduleValue, HostTransfersGoIntoASpaceOnce) {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}};
  draft.cluster.spaces = {{"card", kInfinity}};
  draft.cluster.devices = {{"acc0", KindId{0}}, {"acc1", KindId{0}}, {"acc2", KindId{0}}};
  draft.cluster.devices[1].space = draft.cluster.devices[2].space = SpaceId{0};
  for (Device& device : draft.cluster.devices) device.receive_overhead = 1;
  draft.cluster.devices[0].send_overhead = 0.5;
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("x", {1}), op("y", {1}), op("z", {1})};
  draft.tensors = {tensor(0, {1, 2}, 4, 2)};
  sample.plan.placement = placed({0, 2, 1});
  sample.plan.schedule = Schedule{Table<OpId, double>(std::vector<double>{0, 5.5, 5.5}),
                                  Table<OpId, double>(std::vector<double>{1.5, 7.5, 7.5}),
                                  {out(0, 0, 1.5, 3.5), in(0, 2, 3.5, 5.5)}};
  sample.plan.value = 7.5;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.plan.schedule->transfers[1].to = DeviceId{1};
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("transfer-receiver-wrong"));
}

}  // namespace
}  // namespace placewright::testing
