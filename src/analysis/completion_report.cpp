#include "analysis/completion_report.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "evaluate/simulate.h"
#include "planners/baselines/baselines.h"
#include "planners/flow/chain_groups.h"
#include "planners/latency/latency.h"
#include "planners/methods/speed_up.h"

namespace placewright {
namespace {

// Enough for a search to find what a list schedule misses; large models end by the time.
constexpr std::uint64_t kStepsAlone = 5000;
constexpr double kSecondsAlone = 1;

double time_alone(const Problem& problem, ModelId model) {
  ProblemDraft draft = only_model(problem, model);
  if (draft.ops.empty()) return 0;
  const Problem alone(std::move(draft));
  std::optional<Plan> best;
  for (const PlannerEntry& planner : {heft(), single(), search()}) {
    Control control(planner.name, Budget{.seconds = kSecondsAlone, .steps = kStepsAlone});
    if (best) control.start = &*best;
    std::optional<Plan> plan = planner.plan(alone, Settings{planner.options}, control).plan;
    if (plan && (!best || plan->value < best->value)) best = std::move(plan);
  }
  return best ? best->value : kInfinity;
}

}  // namespace

ProblemDraft only_model(const Problem& problem, ModelId model) {
  const ProblemDraft& all = problem.draft();
  ProblemDraft draft = all;
  draft.objective = Objective::latency;
  draft.models = {all.models[model.index()]};
  draft.models[0].arrival = 0;
  draft.ops.clear();
  draft.tensors.clear();
  draft.colocated.clear();
  draft.shared_weights.clear();
  Table<OpId, OpId> number(all.ops.size());
  for (const OpId op : problem.ops()) {
    if (problem.op(op).model != model) continue;
    number[op] = OpId{draft.ops.size()};
    draft.ops.push_back(problem.op(op));
    draft.ops.back().model = ModelId{0};
  }
  const auto renumbered = [&](const std::vector<OpId>& ops) {
    std::vector<OpId> kept;
    for (const OpId op : ops) {
      if (number[op].valid()) kept.push_back(number[op]);
    }
    return kept;
  };
  for (Tensor tensor : all.tensors) {
    if (!number[tensor.producer].valid()) continue;
    tensor.producer = number[tensor.producer];
    tensor.consumers = renumbered(tensor.consumers);
    draft.tensors.push_back(std::move(tensor));
  }
  for (const auto& group : all.colocated) {
    std::vector<OpId> kept = renumbered(group);
    if (kept.size() > 1) draft.colocated.push_back(std::move(kept));
  }
  for (SharedWeight weight : all.shared_weights) {
    weight.ops = renumbered(weight.ops);
    if (!weight.ops.empty()) draft.shared_weights.push_back(std::move(weight));
  }
  return draft;
}

CompletionReport completion_report(const Problem& problem, const Plan& plan) {
  CompletionReport report;
  report.models = Table<ModelId, ModelCompletion>(problem.model_count());
  for (const ModelId model : problem.models()) {
    report.models[model].completion = problem.model(model).arrival;
    report.models[model].alone = time_alone(problem, model);
  }
  const SpeedUps speed_ups(problem);
  for (const OpId op : problem.ops()) {
    ModelCompletion& model = report.models[problem.op(op).model];
    ++model.ops;
    model.completion = std::max(model.completion, plan.schedule->end[op]);
    if (speed_ups.of(op, plan.placement[op]) < speed_ups.best(op)) ++model.moved_ops;
  }
  const CoarsenOptions standard;
  const Coarsening packing(problem,
                           packed_chains(problem, standard.speedup_ratio, standard.longest_packed));
  for (const OpId op : packing.coarse().ops()) {
    ++report.models[packing.coarse().op(op).model].packed_ops;
  }
  for (const ModelId id : problem.models()) {
    ModelCompletion& model = report.models[id];
    const Model& record = problem.model(id);
    // Without the others the model can at least do what it does beside them.
    model.alone = std::min(model.alone, model.completion - record.arrival);
    if (model.alone > 0) model.slowdown = (model.completion - record.arrival) / model.alone;
    model.late = record.deadline && model.completion > *record.deadline;
    report.packed_ops += model.packed_ops;
    report.moved_ops += model.moved_ops;
  }
  const Simulation simulation = simulate(problem, plan);
  report.idle = Table<DeviceId, double>(problem.device_count());
  for (const DeviceId device : problem.devices()) {
    report.idle[device] = simulation.devices[device].idle;
  }
  return report;
}

}  // namespace placewright
