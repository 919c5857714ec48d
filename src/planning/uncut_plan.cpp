#include "planning/uncut_plan.h"

#include <algorithm>
#include <utility>

#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

std::vector<DeviceId> devices_of(const Problem& problem, KindId kind) {
  std::vector<DeviceId> devices;
  for (const DeviceId device : problem.devices()) {
    if (problem.kind_of(device) == kind) devices.push_back(device);
  }
  return devices;
}

// All ops, those of the models that are shortest for their weight on the device first.
std::vector<OpId> shortest_first(const Problem& problem, DeviceId device) {
  Table<ModelId, double> rank(problem.model_count(), 0);
  for (const OpId op : problem.ops()) rank[problem.op(op).model] += problem.time(op, device);
  for (const ModelId model : problem.models()) rank[model] /= problem.model(model).weight;
  std::vector<OpId> order(problem.topological_order().begin(), problem.topological_order().end());
  std::ranges::stable_sort(order, {}, [&](OpId op) { return rank[problem.op(op).model]; });
  return order;
}

std::optional<Plan> accepted(const Problem& problem, Plan plan) {
  return verify(problem, plan).empty() ? std::optional(std::move(plan)) : std::nullopt;
}

std::optional<Plan> in_one_stage(const Problem& problem, std::vector<DeviceId> replicas) {
  const auto& order = problem.topological_order();
  Stage stage{.devices = std::move(replicas), .ops = {order.begin(), order.end()}};
  return accepted(problem, pipeline_plan(problem, std::vector{std::move(stage)}));
}

std::optional<Plan> one_after_the_other(const Problem& problem, DeviceId device) {
  Placement placement(problem.op_count(), device);
  Schedule schedule =
      ScheduleEvaluator(problem).schedule(shortest_first(problem, device), placement);
  schedule = retime(problem, placement, schedule);
  return accepted(problem, schedule_plan(problem, std::move(placement), std::move(schedule)));
}

}  // namespace

std::optional<Plan> uncut_plan(const Problem& problem, KindId kind) {
  const std::vector<DeviceId> devices = devices_of(problem, kind);
  if (devices.empty() || problem.op_count() == 0) return std::nullopt;
  if (!record_of(problem.objective()).runs) return std::nullopt;
  const DeviceId device = devices.front();
  if (!std::ranges::all_of(problem.ops(), [&](OpId op) { return problem.allowed(op, device); })) {
    return std::nullopt;
  }
  if (problem.objective() != Objective::throughput) return one_after_the_other(problem, device);
  auto replicated = in_one_stage(problem, devices);
  return replicated ? std::move(replicated) : in_one_stage(problem, {device});
}

std::optional<Plan> best_uncut_plan(const Problem& problem) {
  std::optional<Plan> best;
  for (std::size_t kind = 0; kind < problem.kind_count(); ++kind) {
    std::optional<Plan> plan = uncut_plan(problem, KindId{kind});
    if (plan && (!best || plan->value < best->value)) best = std::move(plan);
  }
  return best;
}

std::vector<DeviceId> devices_of_uncut(const Plan& plan) {
  return plan.schedule ? std::vector{plan.placement[OpId{0}]} : plan.stages.front().devices;
}

bool is_uncut(const Plan& plan) {
  if (!plan.schedule) return plan.stages.size() == 1;
  return std::ranges::all_of(plan.placement,
                             [&](DeviceId device) { return device == plan.placement[OpId{0}]; });
}

}  // namespace placewright
