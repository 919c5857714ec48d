// Every pipeline of a small problem, one after the other.
//
// The other exact planners of the family leave some rules out: peak memory, and replicas without
// joint contiguity. Here each colocation group is placed on each device that may run it, the
// devices left over join the stages as replicas in every way, and where the place in the pipeline
// counts (samples in flight, in training under peak memory) the stages are listed in every order.
//
// Time: O(ops + edges) for each candidate, and devices^groups candidates without replicas.
// Memory: O(ops + devices).

#include "planners/exhaustive.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "evaluate/contiguity.h"
#include "evaluate/device_graph.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/simulate.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

// At most: each device that is left over joins one of the stages, or none.
double candidate_count(const Problem& problem) {
  double count = 1;
  for (const GroupId group : problem.groups()) {
    double allowed = 0;
    for (const DeviceId device : problem.devices()) {
      allowed += problem.group_allowed(group, device) ? 1 : 0;
    }
    count *= allowed;
  }
  const auto devices = static_cast<double>(problem.device_count());
  if (problem.rules().max_replicas > 1) count *= std::pow(devices, devices - 1);
  return count;
}

class PipelineEnumeration {
 public:
  PipelineEnumeration(const Problem& problem, Control& control)
      : problem_(problem),
        enumeration_(control),
        ledger_(problem),
        placement_(problem.op_count()),
        peak_(problem.rules().memory == MemoryModel::peak),
        ordered_(peak_ && problem.has_backward_ops()) {}

  Answer run() {
    place(0);
    return std::move(enumeration_).answer("pipeline");
  }

 private:
  void place(std::size_t next) {
    if (next == problem_.group_count()) {
      enumeration_.count();
      if (contiguous(problem_, placement_)) try_stages();
      return;
    }
    const GroupId group{next};
    for (const DeviceId device : problem_.devices()) {
      if (enumeration_.stopped()) return;
      if (!problem_.group_allowed(group, device) || !ledger_.fits_group(group, device)) continue;
      for (const OpId op : problem_.group_ops(group)) placement_[op] = device;
      ledger_.add_group(group, device);
      place(next + 1);
      ledger_.remove_group(group, device);
    }
  }

  void try_stages() {
    stages_ = stages_of(problem_, placement_);
    std::vector<DeviceId> spare;
    for (const DeviceId device : problem_.devices()) {
      const bool used = std::ranges::any_of(
          stages_, [&](const Stage& stage) { return stage.devices.front() == device; });
      if (!used) spare.push_back(device);
    }
    add_replicas(spare);
  }

  void add_replicas(std::span<const DeviceId> spare) {
    if (spare.empty() || problem_.rules().max_replicas == 1) {
      offer();
      return;
    }
    add_replicas(spare.subspan(1));
    for (Stage& stage : stages_) {
      if (enumeration_.stopped() || !may_join(spare.front(), stage)) continue;
      stage.devices.push_back(spare.front());
      add_replicas(spare.subspan(1));
      stage.devices.pop_back();
    }
  }

  [[nodiscard]] bool may_join(DeviceId device, const Stage& stage) const {
    const DeviceId first = stage.devices.front();
    const auto most = static_cast<std::size_t>(problem_.rules().max_replicas);
    return stage.devices.size() < most && problem_.kind_of(device) == problem_.kind_of(first) &&
           within_memory(ledger_.used(first), problem_.device(device).memory) &&
           std::ranges::none_of(stage.ops,
                                [&](OpId op) { return problem_.op(op).pinned_to.valid(); });
  }

  void offer() {
    enumeration_.count();
    Plan plan = pipeline_plan(problem_, stages_);
    if (plan.value >= enumeration_.value()) return;
    if (!ordered_) {
      take_if_it_fits(std::move(plan));
      return;
    }
    std::vector<std::size_t> order(stages_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      for (std::size_t i = 0; i < order.size(); ++i) plan.stages[i] = stages_[order[i]];
      if (in_pipeline_order(plan)) take_if_it_fits(pipeline_plan(problem_, plan.stages));
    } while (plan.value < enumeration_.value() &&
             std::next_permutation(order.begin(), order.end()));
  }

  // Joint contiguity: no stage feeds an earlier one of the list.
  [[nodiscard]] bool in_pipeline_order(const Plan& plan) const {
    if (problem_.rules().contiguity != Contiguity::joint) return true;
    Table<DeviceId, std::size_t> position(problem_.device_count(), 0);
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
      position[plan.stages[i].devices.front()] = i;
    }
    const auto readers = device_graph(problem_, placement_);
    return std::ranges::all_of(plan.stages, [&](const Stage& stage) {
      const DeviceId device = stage.devices.front();
      return std::ranges::all_of(
          readers[device], [&](DeviceId reader) { return position[reader] >= position[device]; });
    });
  }

  void take_if_it_fits(Plan plan) {
    if (peak_ && device_over_peak(problem_, simulate(problem_, plan))) return;
    enumeration_.take(std::move(plan));
  }

  const Problem& problem_;
  Enumeration enumeration_;
  MemoryLedger ledger_;
  Placement placement_;
  bool peak_;
  bool ordered_;  // the plan depends on the order of its stages
  std::vector<Stage> stages_;
};

}  // namespace

PlannerEntry exhaustive_throughput() {
  return exhaustive<PipelineEnumeration>(Objective::throughput, candidate_count);
}

}  // namespace placewright
