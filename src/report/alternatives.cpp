#include "report/alternatives.h"

#include <algorithm>
#include <set>

#include "analysis/carried_plan.h"
#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"

namespace placewright {
namespace {

// Evaluations x (ops + edges): about a second.
constexpr double kMostWork = 3e6;

bool runs_everything(const Problem& problem, DeviceId device) {
  const auto ops = problem.ops();
  return std::all_of(ops.begin(), ops.end(), [&](OpId op) { return problem.allowed(op, device); });
}

double value_of(const Problem& problem, const Plan& plan, const Placement& placement) {
  const auto carried = carried_plan(problem, placement, plan);
  return carried ? carried->value : kInfinity;
}

}  // namespace

std::optional<SingleDevice> best_single_device(const Problem& problem) {
  std::optional<SingleDevice> best;
  std::set<std::pair<std::size_t, double>> tried;  // equal devices give equal values
  for (const DeviceId device : problem.devices()) {
    if (!runs_everything(problem, device)) continue;
    const Placement placement(problem.op_count(), device);
    if (!MemoryLedger(problem, placement).within(device)) continue;
    if (!tried.emplace(problem.kind_of(device).index(), problem.device(device).lanes).second) {
      continue;
    }
    const auto plan = plan_of_placement(problem, placement);
    if (plan && (!best || plan->value < best->value)) best = {device, plan->value};
  }
  return best;
}

std::optional<std::vector<Move>> moves_of(const Problem& problem, const Plan& plan) {
  const auto evaluations =
      static_cast<double>(problem.group_count()) * static_cast<double>(problem.device_count() - 1);
  const auto size = static_cast<double>(problem.op_count() + problem.edge_count());
  const bool replicated = std::any_of(plan.stages.begin(), plan.stages.end(),
                                      [](const Stage& stage) { return stage.devices.size() > 1; });
  if (replicated || evaluations * size > kMostWork) return std::nullopt;

  std::vector<Move> moves(problem.group_count() * problem.device_count());
  Placement placement = plan.placement;
  MemoryLedger memory(problem, placement);
  for (const GroupId group : problem.groups()) {
    const auto ops = problem.group_ops(group);
    const DeviceId home = placement[ops.front()];
    memory.remove_group(group, home);
    for (const DeviceId device : problem.devices()) {
      Move& move = moves[group.index() * problem.device_count() + device.index()];
      if (device == home) {
        move = {MoveVerdict::possible, plan.value};
        continue;
      }
      if (!problem.group_allowed(group, device)) continue;
      move.verdict = MoveVerdict::memory;
      if (!memory.fits_group(group, device)) continue;
      for (const OpId op : ops) placement[op] = device;
      move.value = value_of(problem, plan, placement);
      move.verdict = move.value < kInfinity ? MoveVerdict::possible : MoveVerdict::rule;
      for (const OpId op : ops) placement[op] = home;
    }
    memory.add_group(group, home);
  }
  return moves;
}

}  // namespace placewright
