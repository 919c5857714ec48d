#include "analysis/op_moves.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/carried_plan.h"
#include "analysis/cuts.h"
#include "evaluate/memory.h"
#include "planning/sizes.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

double group_time(const Problem& problem, GroupId group, DeviceId device) {
  double time = 0;
  for (const OpId op : problem.group_ops(group)) time += problem.time(op, device);
  return time;
}

// A pinned op of the group, or one that is not valid.
OpId pinned_op(const Problem& problem, GroupId group) {
  for (const OpId op : problem.group_ops(group)) {
    if (problem.op(op).pinned_to.valid()) return op;
  }
  return {};
}

OpMove forbidden(const Problem& problem, GroupId group, DeviceId device) {
  for (const OpId op : problem.group_ops(group)) {
    if (problem.time(op, device) == kUnsupported) {
      return {device, Obstacle::support,
              fmt::format("device '{}' cannot run op '{}'", problem.device(device).name,
                          problem.op(op).name)};
    }
  }
  const OpId pinned = pinned_op(problem, group);
  return {device, Obstacle::pin,
          fmt::format("op '{}' is pinned to device '{}'", problem.op(pinned).name,
                      problem.device(problem.op(pinned).pinned_to).name)};
}

Obstacle obstacle_of(ViolationCode code) {
  switch (code) {
    case ViolationCode::memory_exceeded:
    case ViolationCode::peak_memory_exceeded:
      return Obstacle::memory;
    case ViolationCode::no_link:
      return Obstacle::link;
    case ViolationCode::not_contiguous:
    case ViolationCode::stages_out_of_order:
      return Obstacle::contiguity;
    case ViolationCode::too_many_calls:
    case ViolationCode::calls_deadlock:
      return Obstacle::calls;
    default:
      return Obstacle::other;
  }
}

// Why the placement has no plan: the verifier names the first rule that the bare placement breaks.
void explain_missing_plan(const Problem& problem, const Placement& placement, OpMove& move) {
  Plan bare;
  bare.placement = placement;
  for (const Violation& violation : verify(problem, bare)) {
    if (violation.code == ViolationCode::schedule_missing) continue;
    if (violation.code == ViolationCode::value_wrong) continue;
    move.obstacle = obstacle_of(violation.code);
    move.reason = violation.message;
    return;
  }
  move.obstacle = Obstacle::other;
  move.reason = "no plan follows from the moved placement";
}

OpMove moved(const Problem& problem, const Plan& plan, GroupId group, DeviceId device) {
  if (!problem.group_allowed(group, device)) return forbidden(problem, group, device);
  const DeviceId home = plan.placement[problem.group_ops(group).front()];
  Placement placement = plan.placement;
  for (const OpId op : problem.group_ops(group)) placement[op] = device;
  OpMove move{.device = device};
  move.compute_change = group_time(problem, group, device) - group_time(problem, group, home);
  move.plan = carried_plan(problem, placement, plan);
  if (!move.plan) {
    explain_missing_plan(problem, placement, move);
    return move;
  }
  move.transfer_change = time_of_cuts(problem, *move.plan) - time_of_cuts(problem, plan);
  const auto violations = verify(problem, *move.plan);
  if (!violations.empty()) {
    move.obstacle = obstacle_of(violations.front().code);
    move.reason = violations.front().message;
  }
  return move;
}

}  // namespace

std::vector<OpMove> moves_of_op(const Problem& problem, const Plan& plan, OpId op) {
  std::vector<OpMove> moves;
  for (const DeviceId device : problem.devices()) {
    if (device == plan.placement[op]) continue;
    moves.push_back(moved(problem, plan, problem.group(op), device));
  }
  return moves;
}

std::vector<std::string> holds_of_op(const Problem& problem, const Plan& plan, OpId op,
                                     const std::vector<OpMove>& moves) {
  std::vector<std::string> holds;
  const GroupId group = problem.group(op);
  const OpId pinned = pinned_op(problem, group);
  if (pinned.valid()) {
    holds.push_back(fmt::format("pin: op '{}' is pinned to '{}'", problem.op(pinned).name,
                                problem.device(problem.op(pinned).pinned_to).name));
  }
  if (const std::size_t others = problem.group_ops(group).size() - 1; others > 0) {
    holds.push_back(fmt::format("colocation: it moves only together with {} other op{}", others,
                                others == 1 ? "" : "s"));
  }
  for (const OpMove& move : moves) {
    const std::string& device = problem.device(move.device).name;
    if (move.obstacle == Obstacle::pin) continue;
    if (move.obstacle != Obstacle::none) {
      holds.push_back(fmt::format("{}: {}", name_of(move.obstacle), move.reason));
      continue;
    }
    if (move.value() <= plan.value) continue;
    if (move.compute_change > 0) holds.push_back(fmt::format("time: '{}' runs it slower", device));
    if (move.transfer_change > 0) {
      holds.push_back(fmt::format("transfer: on '{}' more would have to be sent", device));
    }
    if (move.compute_change <= 0 && move.transfer_change <= 0) {
      holds.push_back(fmt::format("load: '{}' is busy when it would run there", device));
    }
  }
  return holds;
}

}  // namespace placewright
