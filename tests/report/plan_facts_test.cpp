// What the page says about a plan: work, memory, moves.

#include <gtest/gtest.h>

#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "evaluate/schedule.h"
#include "evaluate/simulate.h"
#include "report/alternatives.h"
#include "report/device_memory.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

Plan random_schedule(const Problem& problem, std::uint64_t seed) {
  testing::RandomSource random(seed);
  const Placement placement = testing::random_placement(problem, random);
  return *plan_of_placement(problem, placement);
}

TEST(DeviceWork, OfAScheduleAddsUpItsActivities) {
  const Problem problem(testing::random_draft({.ops = 20}, 9));
  const Plan plan = random_schedule(problem, 9);
  const auto work = simulate(problem, plan).devices;
  double compute = 0;
  double in = 0;
  double out = 0;
  std::size_t ops = 0;
  for (const DeviceSummary& device : work) {
    compute += device.compute;
    in += device.receiving;
    out += device.sending;
    ops += device.ops;
  }
  double expected = 0;
  for (const double duration : op_durations(problem, plan.placement)) expected += duration;
  EXPECT_NEAR(compute, expected, 1e-9 * expected);
  EXPECT_NEAR(in, out, 1e-9 * (1 + in));  // every direct transfer leaves one and enters another
  EXPECT_EQ(ops, problem.op_count());
}

TEST(DeviceWork, OfAPipelineHasTheBusiestDeviceAtTheValue) {
  const Problem problem(testing::random_draft(
      {.objective = Objective::throughput, .interconnect = InterconnectKind::host, .ops = 12}, 4));
  const auto plan = plan_of_placement(problem, Placement(problem.op_count(), DeviceId{0}));
  ASSERT_TRUE(plan);
  double busiest = 0;
  const auto work = simulate(problem, *plan).devices;
  for (const DeviceSummary& device : work) {
    busiest = std::max(busiest, device.busy);
  }
  EXPECT_DOUBLE_EQ(busiest, plan->value);
}

// A chain of two ops on two devices, by hand.
TEST(DeviceMemory, HoldsTensorsFromProducerToReader) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.devices = {{"a", KindId{0}}, {"b", KindId{0}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1, kInfinity}};
  draft.models = {{"model"}};
  draft.ops.resize(2);
  draft.ops[0] = {.name = "make", .memory = 100, .time = {2}};
  draft.ops[1] = {.name = "read", .memory = 10, .time = {3}};
  draft.tensors.push_back({.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 7});
  const Problem problem(std::move(draft));
  Placement placement(2);
  placement[OpId{0}] = DeviceId{0};
  placement[OpId{1}] = DeviceId{1};
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  const auto memory = device_memory(problem, *plan);
  // make runs 0..2, the tensor moves 2..3, read runs 3..6.
  EXPECT_EQ(memory[DeviceId{0}].resident, 100);
  EXPECT_EQ(memory[DeviceId{0}].peak, 107);
  EXPECT_EQ(memory[DeviceId{0}].steps,
            (std::vector<std::pair<double, double>>{{0, 107}, {3, 100}}));
  EXPECT_EQ(memory[DeviceId{1}].steps,
            (std::vector<std::pair<double, double>>{{0, 10}, {2, 17}, {6, 10}}));
}

// Two devices of one memory: nothing moves, and the tensor is there until its reader ends.
TEST(DeviceMemory, IsThatOfTheSpaceThatDevicesShare) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.spaces = {{"shared"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}, .space = SpaceId{0}},
                           {.name = "b", .kind = KindId{0}, .space = SpaceId{0}}};
  draft.models = {{"model"}};
  draft.ops = {{.name = "make", .memory = 100, .time = {2}},
               {.name = "read", .memory = 10, .time = {3}}};
  draft.tensors.push_back({.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 7});
  const Problem problem(std::move(draft));
  Placement placement(2, DeviceId{0});
  placement[OpId{1}] = DeviceId{1};
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  for (const DeviceMemory& memory : device_memory(problem, *plan)) {
    EXPECT_EQ(memory.resident, 110);
    EXPECT_EQ(memory.peak, 117);
    EXPECT_EQ(memory.steps, (std::vector<std::pair<double, double>>{{0, 117}, {5, 110}}));
  }
}

TEST(DeviceMemory, AShortProfileKeepsThePeak) {
  const Problem problem(testing::random_draft({.ops = 60}, 2));
  const Plan plan = random_schedule(problem, 2);
  const auto whole = device_memory(problem, plan, 100000);
  const auto thin = device_memory(problem, plan, 10);
  for (const DeviceId device : problem.devices()) {
    EXPECT_LE(thin[device].steps.size(), 10U);
    double most = 0;
    for (const auto& [time, bytes] : thin[device].steps) most = std::max(most, bytes);
    EXPECT_DOUBLE_EQ(most, whole[device].peak);
  }
}

TEST(Moves, AreWhatThePlacementWouldCost) {
  const Problem problem(testing::random_draft({.ops = 10, .unsupported = true, .pins = true}, 6));
  const Plan plan = random_schedule(problem, 6);
  const auto moves = moves_of(problem, plan);
  ASSERT_TRUE(moves);
  for (const GroupId group : problem.groups()) {
    for (const DeviceId device : problem.devices()) {
      const Move& move = (*moves)[group.index() * problem.device_count() + device.index()];
      if (plan.placement[problem.group_ops(group).front()] == device) {
        EXPECT_EQ(move.value, plan.value);
        continue;
      }
      EXPECT_EQ(move.verdict == MoveVerdict::unsupported, !problem.group_allowed(group, device));
      if (move.verdict != MoveVerdict::possible) continue;
      Placement moved = plan.placement;
      for (const OpId op : problem.group_ops(group)) moved[op] = device;
      EXPECT_LE(move.value, plan_of_placement(problem, moved)->value + 1e-9);
    }
  }
}

TEST(SingleDevice, IsTheBestThatFits) {
  const Problem problem(testing::random_draft({.ops = 10}, 11));
  const auto single = best_single_device(problem);
  ASSERT_TRUE(single);
  for (const DeviceId device : problem.devices()) {
    const auto plan = plan_of_placement(problem, Placement(problem.op_count(), device));
    EXPECT_LE(single->value, plan->value + 1e-9);
  }
}

}  // namespace
}  // namespace placewright
