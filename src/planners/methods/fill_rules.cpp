#include "planners/methods/fill_rules.h"

#include <algorithm>
#include <cmath>

#include "evaluate/placement_plan.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/fill.h"

namespace placewright {
namespace {

// The number of ops at which each device has its share.
Table<DeviceId, double> shares(const Problem& problem) {
  double largest = 0;
  for (const DeviceId device : problem.devices()) {
    const double memory = problem.device(device).memory;
    if (memory < kInfinity) largest = std::max(largest, memory);
  }
  if (largest == 0) largest = 1;
  double total = 0;
  Table<DeviceId, double> share(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    share[device] = std::min(problem.device(device).memory, largest);
    total += share[device];
  }
  if (total == 0) total = 1;
  for (double& part : share) {
    part = std::ceil(part / total * static_cast<double>(problem.op_count()));
  }
  return share;
}

std::optional<Plan> each_where_it_fits(const Problem& problem, DeviceChoice& choice) {
  Placement placement(problem.op_count());
  for (const OpId op : problem.topological_order()) {
    const auto candidates = choice.candidates(op);
    if (candidates.empty()) return std::nullopt;
    placement[op] = candidates.front();
    choice.take(op, placement[op]);
  }
  return plan_of_placement(problem, placement);
}

}  // namespace

Answer fill_in_turn(const Problem& problem, Control& control) {
  return fill_plan(
      problem, [](const Fill&) { return false; }, control);
}

Answer fill_evenly(const Problem& problem, Control& control) {
  double total = 0;
  double largest = 0;
  for (const OpId op : problem.ops()) {
    total += problem.memory(op);
    largest = std::max(largest, problem.memory(op));
  }
  for (const SharedWeight& weight : problem.draft().shared_weights) total += weight.bytes;
  const auto devices = static_cast<double>(problem.device_count());
  const double byte_share = total / devices + largest;
  const double op_share = std::ceil(static_cast<double>(problem.op_count()) / devices);
  return fill_plan(
      problem,
      [&](const Fill& fill) {
        return total > 0 ? fill.bytes > byte_share : static_cast<double>(fill.ops) > op_share;
      },
      control);
}

Answer fill_in_proportion(const Problem& problem, Control& control) {
  const Table<DeviceId, double> share = shares(problem);
  return fill_plan(
      problem, [&](const Fill& fill) { return static_cast<double>(fill.ops) > share[fill.device]; },
      control);
}

Answer first_that_fits(const Problem& problem, Control& control) {
  Answer answer = construct(
      problem, control, [&](DeviceChoice& choice) { return each_where_it_fits(problem, choice); });
  if (answer.plan || answer.proved_infeasible || is_schedule(problem.objective())) return answer;
  return fill_in_turn(problem, control);
}

}  // namespace placewright
