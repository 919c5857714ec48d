// Device calls worked out by hand, and the rule that splits a placement into calls.

#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "samples.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

using ::testing::HasSubstr;

double value_of(const Sample& sample) {
  return verified_value(Problem(sample.draft), sample.plan);
}

TEST(CallValue, LastEndOfCallsAndHostOps) {
  Sample sample = device_calls();
  EXPECT_DOUBLE_EQ(value_of(sample), 13);
  sample.draft.ops.push_back(op("late", {1, 20}));
  sample.plan.placement.push_back(DeviceId{1});
  EXPECT_DOUBLE_EQ(value_of(sample), 20);
}

TEST(CallValue, SplitFollowsTheRule) {
  const Sample sample = device_calls();
  const Problem problem(sample.draft);
  // s has no predecessor, so it joins p: 3 + 3 + 1 out; q until 12; r 1 in + 3.
  const std::vector<Call> calls = timed_calls_of(problem, sample.plan.placement);
  const std::vector<Call> expected{{DeviceId{0}, ops({0, 3}), 0, 7},
                                   {DeviceId{0}, ops({2}), 12, 16}};
  EXPECT_EQ(calls, expected);
  Plan plan;
  plan.placement = sample.plan.placement;
  plan.value = 16;
  EXPECT_DOUBLE_EQ(verified_value(problem, plan), 16);
  EXPECT_TRUE(verify(problem, plan).empty());
}

TEST(CallValue, OverheadsAndTensorsBetweenCallsOfOneDevice) {
  Sample sample = device_calls();
  sample.draft.cluster.devices[0].send_overhead = 0.5;
  sample.draft.cluster.devices[0].receive_overhead = 0.25;
  sample.draft.cluster.devices[1].send_overhead = 100;   // the host moves nothing
  sample.draft.tensors.push_back(tensor(3, {2}, 5, 2));  // s -> r: out 2, and in again 2
  sample.draft.tensors.push_back(tensor(3, {}, 5, 100));
  sample.plan.calls = {{DeviceId{0}, ops({0}), 0, 4.5},
                       {DeviceId{0}, ops({3}), 4.5, 4.5 + 3 + 2.5},
                       {DeviceId{0}, ops({2}), 10, 10 + 1.25 + 2.25 + 3}};
  sample.plan.value = 16.5;
  EXPECT_DOUBLE_EQ(value_of(sample), 16.5);
  EXPECT_TRUE(verify(Problem(sample.draft), sample.plan).empty());
}

TEST(CallValue, CallsOfTwoDevicesThatWaitForEachOtherHaveNoValue) {
  Sample sample = device_calls();
  sample.draft.cluster.devices = {{"acc0", KindId{0}}, {"acc1", KindId{0}}, {"cpu", KindId{1}}};
  // p -> q from acc0 to acc1, r -> s from acc1 to acc0: nobody comes back, yet both wait.
  sample.draft.tensors = {tensor(0, {1}, 5, 1), tensor(2, {3}, 5, 1)};
  sample.plan.placement = placed({0, 1, 1, 0});
  sample.plan.calls.clear();
  const Problem problem(sample.draft);
  EXPECT_EQ(verified_value(problem, sample.plan), kInfinity);
  const auto violations = verify(problem, sample.plan);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].code, ViolationCode::calls_deadlock);
  for (const Call& call : timed_calls_of(problem, sample.plan.placement)) {
    EXPECT_EQ(call.start, kInfinity);
  }
}

TEST(CallValue, TheTensorStatesWhatACutCosts) {
  Sample sample = shared_calls();
  sample.draft.cluster.devices[0].send_overhead = 100;
  sample.draft.tensors[0].cuts = {{KindId{0}, 0.5, 0.25}};
  sample.plan.calls[0].end = sample.plan.calls[1].start = 4.5;
  sample.plan.calls[1].end = sample.plan.calls[2].start = 8.75;
  sample.plan.calls[2].end = sample.plan.value = 11.75;
  EXPECT_TRUE(verify(Problem(sample.draft), sample.plan).empty());
}

// p and r are one call of acc0, 0-7; q waits for it. s could run at once on acc2, but for the bus.
TEST(CallValue, CallsOfAPlacementWaitForTheirResources) {
  Sample sample = shared_calls();
  sample.draft.cluster.devices.push_back({"acc2", KindId{0}});
  sample.draft.ops.push_back(op("s", {5, 50}));
  sample.plan.placement.push_back(DeviceId{3});
  const std::vector<Call> beside{{DeviceId{0}, ops({0, 2}), 0, 7},
                                 {DeviceId{3}, ops({3}), 0, 5},
                                 {DeviceId{1}, ops({1}), 7, 11}};
  EXPECT_EQ(timed_calls_of(Problem(sample.draft), sample.plan.placement), beside);
  sample.draft.cluster.devices[3].uses = {{ResourceId{0}, 0.5}};
  const std::vector<Call> after{{DeviceId{0}, ops({0, 2}), 0, 7},
                                {DeviceId{1}, ops({1}), 7, 11},
                                {DeviceId{3}, ops({3}), 11, 16}};
  EXPECT_EQ(timed_calls_of(Problem(sample.draft), sample.plan.placement), after);
  sample.draft.ops[0].share = sample.draft.ops[1].share = sample.draft.ops[2].share = {0.5, 1};
  EXPECT_EQ(timed_calls_of(Problem(sample.draft), sample.plan.placement), beside);
}

TEST(CallValue, APlanOnSharedResourcesStatesItsCalls) {
  Sample sample = shared_calls();
  const Problem problem(sample.draft);
  sample.plan.calls.clear();
  sample.plan.value = verified_value(problem, sample.plan);
  const auto violations = verify(problem, sample.plan);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].code, ViolationCode::call_missing);
  EXPECT_THAT(violations[0].message, HasSubstr("the plan states no calls"));
  for (Device& device : sample.draft.cluster.devices) device.uses.clear();
  const Problem apart(sample.draft);
  sample.plan.value = verified_value(apart, sample.plan);
  EXPECT_TRUE(verify(apart, sample.plan).empty());
}

// Over all paths that end in `op`, walked backwards: how often the path has left the device's ops
// and come back.
int returns_by_paths(const Problem& problem, const Placement& placement, OpId op) {
  const DeviceId device = placement[op];
  int most = 0;
  // `away`: the part of the path behind us is outside, and ends with a return to the device.
  const std::function<void(OpId, bool, int)> walk = [&](OpId at, bool away, int returns) {
    const bool here = placement[at] == device;
    if (here && away) ++returns;
    if (here) most = std::max(most, returns);
    for (const OpId previous : problem.predecessors(at)) walk(previous, !here, returns);
  };
  walk(op, false, 0);
  return most;
}

TEST(CallValue, SplitCountsReturnsOverAllPaths) {
  std::size_t later_calls = 0;
  std::size_t deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    ProblemDraft draft = random_draft({.objective = Objective::call_latency,
                                       .interconnect = InterconnectKind::host,
                                       .ops = 9,
                                       .devices = 3},
                                      seed);
    draft.rules.calls_per_device = 9;
    const Problem problem(std::move(draft));
    RandomSource random(seed);
    Plan plan;
    for (std::size_t i = 0; i < problem.op_count(); ++i) {
      plan.placement.push_back(DeviceId{random.below(problem.device_count())});
    }
    plan.calls = timed_calls_of(problem, plan.placement);
    Table<DeviceId, int> number(problem.device_count(), 0);
    for (const Call& call : plan.calls) {
      for (const OpId op : call.ops) {
        ASSERT_EQ(returns_by_paths(problem, plan.placement, op), number[call.device])
            << "seed " << seed;
      }
      later_calls += number[call.device]++ > 0 ? 1 : 0;
    }
    plan.value = verified_value(problem, plan);
    if (plan.value == kInfinity) {
      ++deadlocks;
      continue;
    }
    const auto violations = verify(problem, plan);
    ASSERT_TRUE(violations.empty()) << "seed " << seed << ": " << violations.front().message;
  }
  EXPECT_GT(later_calls, 100U);
  EXPECT_LT(deadlocks, 400U);
}

}  // namespace
}  // namespace placewright::testing
