// The slowest schedule of all does one thing at a time, so it keeps every rule about time whatever
// the placement: the verifier must accept it on every random problem, and notice when any op or
// transfer is moved before what it waits for.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "problem/plan.h"
#include "problem/problem.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

Placement random_placement(const Problem& problem, RandomSource& random) {
  Placement placement(problem.op_count());
  for (const GroupId group : problem.groups()) {
    std::vector<DeviceId> allowed;
    for (const DeviceId device : problem.devices()) {
      if (problem.group_allowed(group, device)) allowed.push_back(device);
    }
    const DeviceId device = allowed[random.below(allowed.size())];
    for (const OpId op : problem.group_ops(group)) placement[op] = device;
  }
  return placement;
}

// The consumer of smallest rank among those for which `is_there`; not valid if there is none.
template <class IsThere>
OpId first_consumer(const Problem& problem, TensorId tensor, IsThere is_there) {
  OpId first;
  for (const OpId op : problem.consumers(tensor)) {
    if (!is_there(op)) continue;
    if (!first.valid() || problem.topological_rank(op) < problem.topological_rank(first)) {
      first = op;
    }
  }
  return first;
}

// Transfers of one tensor without times, straight from the rules, in the order they may happen.
std::vector<Transfer> transfers_of(const Problem& problem, const Placement& placement,
                                   TensorId tensor) {
  const DeviceId home = placement[problem.producer(tensor)];
  std::vector<Transfer> transfers;
  const bool through_host = problem.interconnect() == InterconnectKind::host;
  for (const SpaceId space : problem.spaces()) {
    const OpId reader = first_consumer(
        problem, tensor, [&](OpId op) { return problem.space(placement[op]) == space; });
    if (space == problem.space(home) || !reader.valid()) continue;
    const DeviceId device = placement[reader];
    if (!through_host) {
      const double time = problem.link_time(tensor, home, device);
      transfers.push_back({tensor, Leg::direct, home, device, 0, time});
      continue;
    }
    const double time = problem.host_time(tensor);
    if (!problem.on_host(home) && transfers.empty()) {
      transfers.push_back({tensor, Leg::out, home, DeviceId{}, 0, time});
    }
    if (!problem.on_host(device)) {
      transfers.push_back({tensor, Leg::in, DeviceId{}, device, 0, time});
    }
  }
  return transfers;
}

double sends(const Problem& problem, const Placement& placement, TensorId tensor) {
  const DeviceId home = placement[problem.producer(tensor)];
  double count = 0;
  for (const Transfer& transfer : transfers_of(problem, placement, tensor)) {
    count += transfer.from.valid() ? 1 : 0;
  }
  const auto consumers = problem.consumers(tensor);
  const bool handed_over = std::any_of(consumers.begin(), consumers.end(), [&](OpId op) {
    return placement[op] != home && problem.same_space(placement[op], home);
  });
  return (count + (handed_over ? 1 : 0)) * problem.send_overhead(tensor, home);
}

bool pays_for_receiving(const Problem& problem, const Placement& placement, TensorId tensor,
                        OpId op) {
  const DeviceId home = placement[problem.producer(tensor)];
  const DeviceId device = placement[op];
  if (device == home) return false;
  const bool in_host_memory =
      problem.interconnect() == InterconnectKind::host && problem.on_host(device);
  if (in_host_memory && !problem.same_space(device, home)) return false;
  return op ==
         first_consumer(problem, tensor, [&](OpId other) { return placement[other] == device; });
}

double duration(const Problem& problem, const Placement& placement, OpId op) {
  const DeviceId device = placement[op];
  double time = problem.time(op, device);
  for (const TensorId tensor : problem.outputs(op)) time += sends(problem, placement, tensor);
  for (const TensorId tensor : problem.inputs(op)) {
    if (pays_for_receiving(problem, placement, tensor, op)) {
      time += problem.receive_overhead(tensor, device);
    }
  }
  return time;
}

Plan serial_plan(const Problem& problem, Placement placement) {
  Plan plan;
  Schedule schedule{
      Table<OpId, double>(problem.op_count()), Table<OpId, double>(problem.op_count()), {}};
  double clock = 0;
  for (const ModelId model : problem.models()) {
    clock = std::max(clock, problem.model(model).arrival);
  }
  for (const OpId op : problem.topological_order()) {
    schedule.start[op] = clock;
    clock += duration(problem, placement, op);
    schedule.end[op] = clock;
    for (const TensorId tensor : problem.outputs(op)) {
      for (Transfer transfer : transfers_of(problem, placement, tensor)) {
        transfer.start += clock;
        transfer.end += clock;
        clock = transfer.end;
        schedule.transfers.push_back(transfer);
      }
    }
  }
  plan.placement = std::move(placement);
  plan.schedule = std::move(schedule);
  plan.value = verified_value(problem, plan);
  return plan;
}

RandomProblemOptions varied_options(std::uint64_t seed) {
  RandomSource random(seed + 1'000'000);
  return {.objective = random.chance(0.5) ? Objective::latency : Objective::total_completion,
          .interconnect = random.chance(0.5) ? InterconnectKind::host : InterconnectKind::links,
          .ops = random.between(1, 14),
          .devices = random.between(1, 5),
          .models = random.between(1, 3),
          .edge_probability = 0.1 + 0.5 * random.unit(),
          .congestion = random.chance(0.5),
          .unsupported = random.chance(0.5),
          .pins = random.chance(0.5),
          .colocation = random.chance(0.5),
          .shared_weights = random.chance(0.5),
          .lanes = random.chance(0.5),
          .overheads = random.chance(0.5),
          .training = random.chance(0.3),
          .integer_times = random.chance(0.5),
          .zero_times = random.chance(0.5),
          .resources = random.chance(0.5),
          .spaces = random.chance(0.5),
          .cuts = random.chance(0.5)};
}

TEST(SerialSchedule, IsAlwaysAccepted) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Problem problem(random_draft(varied_options(seed), seed));
    RandomSource random(seed);
    const Plan plan = serial_plan(problem, random_placement(problem, random));
    const auto violations = verify(problem, plan);
    ASSERT_TRUE(violations.empty()) << "seed " << seed << ": " << violations.front().message;
  }
}

// In a serial schedule whatever has a predecessor starts at its end or later; moving it before that
// breaks a rule, and the value does not hide it.
TEST(SerialSchedule, MovingBeforeAnInputIsNoticed) {
  std::size_t moved_ops = 0;
  std::size_t moved_transfers = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const Problem problem(random_draft(varied_options(seed), seed));
    RandomSource random(seed);
    const Plan valid = serial_plan(problem, random_placement(problem, random));
    const OpId op{random.below(problem.op_count())};
    if (!problem.predecessors(op).empty()) {
      Plan plan = valid;
      double before = kInfinity;
      for (const OpId previous : problem.predecessors(op)) {
        before = std::min(before, plan.schedule->end[previous]);
      }
      if (before <= 0.01) continue;
      const double length = plan.schedule->end[op] - plan.schedule->start[op];
      plan.schedule->start[op] = before * 0.99;
      plan.schedule->end[op] = before * 0.99 + length;
      plan.value = verified_value(problem, plan);
      ASSERT_FALSE(verify(problem, plan).empty()) << "seed " << seed;
      ++moved_ops;
    }
    if (!valid.schedule->transfers.empty()) {
      Plan plan = valid;
      Transfer& transfer = plan.schedule->transfers[random.below(plan.schedule->transfers.size())];
      const double produced = plan.schedule->end[problem.producer(transfer.tensor)];
      if (produced <= 0.01) continue;
      const double length = transfer.end - transfer.start;
      transfer.start = produced * 0.99;
      transfer.end = produced * 0.99 + length;
      ASSERT_FALSE(verify(problem, plan).empty()) << "seed " << seed;
      ++moved_transfers;
    }
  }
  EXPECT_GT(moved_ops, 300U);
  EXPECT_GT(moved_transfers, 300U);
}

}  // namespace
}  // namespace placewright::testing
