#include "analysis/stage_turns.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/limits.h"
#include "evaluate/pipeline.h"
#include "evaluate/resource_load.h"

namespace placewright {
namespace {

// Ends that differ by less are the same: rounding.
constexpr double kTolerance = 1e-9;

// Of the forward pass; the rest of a stage's load is the backward pass's.
std::vector<double> forward_loads(const Problem& problem, const Plan& plan) {
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, plan.placement);
  std::vector<double> forward;
  for (const Stage& stage : plan.stages) {
    const PassLoad& pass = loads[stage.devices.front()].forward;
    forward.push_back(pass.load(problem.rules().transfers) /
                      static_cast<double>(stage.devices.size()));
  }
  return forward;
}

void add_turn(std::vector<StageTurn>& turns, const StageTurn& turn) {
  if (turn.end > turn.start) turns.push_back(turn);
}

std::vector<StageTurn> phased_turns(const Problem& problem, const Plan& plan) {
  const std::vector<double> forward = forward_loads(problem, plan);
  double period = 0;
  for (std::size_t i = 0; i < forward.size(); ++i) {
    period = std::max(period, *plan.stages[i].offset + forward[i]);
  }
  std::vector<StageTurn> turns;
  for (std::size_t i = 0; i < forward.size(); ++i) {
    const Stage& stage = plan.stages[i];
    add_turn(turns, {i, *stage.offset, *stage.offset + forward[i]});
    const double start = period + stage.backward_offset.value_or(0);
    add_turn(turns, {i, start, start + stage.load - forward[i]});
  }
  return turns;
}

// What the stage takes of the resource, its replicas together.
double demand_of(const Problem& problem, const Stage& stage, ResourceId resource) {
  for (const ResourceUse& use : held_by(problem, stage.devices, stage.ops)) {
    if (use.resource == resource) return use.amount;
  }
  return 0;
}

// The stages of which no two fit on the resource together.
std::vector<std::size_t> exclusive_stages(const Problem& problem, const Plan& plan,
                                          ResourceId resource) {
  const double half = problem.resource(resource).capacity / 2;
  std::vector<std::size_t> stages;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const bool more_than_half = demand_of(problem, stage, resource) > half * (1 + kTolerance);
    if (stage.load > 0 && more_than_half) stages.push_back(i);
  }
  return stages;
}

}  // namespace

std::vector<StageTurn> stage_turns(const Problem& problem, const Plan& plan) {
  const auto has_offset = [](const Stage& stage) { return stage.offset.has_value(); };
  if (!std::ranges::all_of(plan.stages, has_offset)) return {};
  if (problem.rules().training == TrainingMode::phased) return phased_turns(problem, plan);
  std::vector<StageTurn> turns;
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const double start = plan.value > 0 ? std::fmod(*stage.offset, plan.value) : 0;
    const double end = start + stage.load;
    const bool goes_over = end > plan.value * (1 + kTolerance);
    add_turn(turns, {i, start, goes_over ? plan.value : end});
    if (goes_over) add_turn(turns, {i, 0, end - plan.value});
  }
  return turns;
}

TakingTurns limiting_turns(const Problem& problem, const Plan& plan) {
  double fullest = 0;
  for (const FullestStage& stage : fullest_stages(problem, plan)) fullest += stage.load;
  if (plan.value <= fullest * (1 + kTolerance)) return {};
  std::map<std::vector<std::size_t>, std::vector<ResourceId>> shared;
  for (const ResourceId resource : problem.resources()) {
    shared[exclusive_stages(problem, plan, resource)].push_back(resource);
  }
  TakingTurns longest;
  for (const auto& [stages, resources] : shared) {
    double time = 0;
    for (const std::size_t stage : stages) time += plan.stages[stage].load;
    if (time > longest.time * (1 + kTolerance)) longest = {stages, resources, time};
  }
  if (longest.stages.size() < 2) return {};
  std::ranges::stable_sort(
      longest.stages, {}, [&](std::size_t stage) { return plan.stages[stage].offset.value_or(0); });
  return longest;
}

}  // namespace placewright
