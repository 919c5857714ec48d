// Every pipeline of a small problem, one after the other.
//
// The other exact planners of the family leave some rules out: peak memory, and replicas without
// joint contiguity. Here each colocation group is placed on each device that may run it, the
// devices left over join the stages as replicas in every way, and where the place in the pipeline
// counts (samples in flight, in training under peak memory) the stages are listed in every order.
//
// Where devices share resources it is branch and bound: groups are placed along the graph, on the
// devices with the least bound first (placed_bound.h); what cannot become better than the best
// plan, or is cyclic where contiguity is asked, is left at once; of plans that an exchange of like
// devices turns into each other (device_symmetries.h) the first is looked at, which is the one
// whose sequence of devices is the smallest. When each stage has its resources:
// stage_arrangement.h.
//
// Time: O(ops + edges) for each candidate, and devices^groups candidates without replicas; with
// shared resources a small part of them: 12 ops on the sets of 4 cores take about a second, 14 more
// than ten. Memory: O(ops + devices).

#include "planners/methods/exhaustive.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "evaluate/contiguity.h"
#include "evaluate/device_graph.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/stage_arrangement.h"
#include "planners/methods/device_symmetries.h"
#include "planners/throughput/placed_bound.h"
#include "planners/throughput/shared_program.h"
#include "planners/throughput/throughput.h"
#include "problem/exclusion.h"

namespace placewright {
namespace {

// Of so many placements on shared resources, branch and bound looks at few enough.
constexpr double kMostSharedPlacements = 1e15;

// Of more stages not every arrangement has to be looked at where sets are nested.
bool arrangements_are_exact(const Problem& problem) {
  if (std::min(problem.group_count(), problem.device_count()) <= kMostArrangedStages) return true;
  return problem.rules().max_replicas == 1 && resources_are_nested(problem);
}

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
  if (problem.resource_count() > 0) {
    const bool few = count <= kMostSharedPlacements && arrangements_are_exact(problem);
    return few ? 1 : kInfinity;
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
        ordered_(problem.rules().memory == MemoryModel::peak && problem.has_backward_ops()),
        order_(along_the_graph(problem)),
        sharing_(problem.resource_count() > 0) {
    if (!sharing_) return;
    bound_.emplace(problem, order_);
    bound_->look_below(enumeration_.value());
    symmetries_ = device_symmetries(problem);
  }

  Answer run() {
    place(0, 0);
    return std::move(enumeration_).answer("pipeline", open_);
  }

 private:
  static std::vector<GroupId> along_the_graph(const Problem& problem) {
    std::vector<GroupId> order(problem.groups().begin(), problem.groups().end());
    std::ranges::stable_sort(order, {}, [&](GroupId group) {
      return problem.topological_rank(problem.group_ops(group).front());
    });
    return order;
  }

  // `bound`: of what is placed.
  void place(std::size_t next, double bound) {
    if (next == order_.size()) {
      enumeration_.count();
      if (contiguous(problem_, placement_)) try_stages();
      leave_if_stopped(bound);
      return;
    }
    const GroupId group = order_[next];
    const std::vector<Choice> found = choices(next);
    if (leave_if_stopped(bound)) return;
    for (const Choice& choice : found) {
      if (choice.bound >= enumeration_.value()) break;
      if (leave_if_stopped(choice.bound)) return;
      put(group, choice.device);
      ledger_.add_group(group, choice.device);
      place(next + 1, choice.bound);
      ledger_.remove_group(group, choice.device);
    }
    put(group, {});
  }

  // Whether plans of this bound, and no less, are not looked at any more.
  bool leave_if_stopped(double bound) {
    if (enumeration_.stopped()) open_ = std::min(open_, bound);
    return enumeration_.stopped();
  }

  void put(GroupId group, DeviceId device) {
    for (const OpId op : problem_.group_ops(group)) placement_[op] = device;
  }

  // Where the next group may go, the most promising first.
  struct Choice {
    double bound = 0;
    DeviceId device;
  };
  std::vector<Choice> choices(std::size_t next) {
    const GroupId group = order_[next];
    std::vector<Choice> found;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.group_allowed(group, device) || !ledger_.fits_group(group, device)) continue;
      double bound = 0;
      if (sharing_) {
        enumeration_.count();
        put(group, device);
        bound = (*bound_)(placement_, next + 1);
        if (bound >= enumeration_.value() || !leads_on(next + 1)) continue;
      }
      found.push_back({bound, device});
    }
    std::ranges::stable_sort(found, {}, &Choice::bound);
    return found;
  }

  // Whether some plan that is to be looked at begins so.
  [[nodiscard]] bool leads_on(std::size_t placed) const {
    const bool smallest = std::ranges::all_of(symmetries_, [&](const auto& exchange) {
      for (std::size_t i = 0; i < placed; ++i) {
        const DeviceId device = placement_[problem_.group_ops(order_[i]).front()];
        if (exchange[device] != device) return device < exchange[device];
      }
      return true;
    });
    return smallest && (problem_.rules().contiguity != Contiguity::joint ||
                        jointly_contiguous(problem_, placement_));
  }

  void try_stages() {
    stages_ = stages_to_evaluate(problem_, placement_);
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
           std::ranges::none_of(stage.ops,
                                [&](OpId op) { return problem_.op(op).pinned_to.valid(); });
  }

  void offer() {
    enumeration_.count();
    Plan plan = pipeline_plan_below(problem_, stages_, enumeration_.value());
    if (plan.value >= enumeration_.value()) return;
    if (!ordered_) {
      take_if_it_fits(std::move(plan));
      return;
    }
    std::vector<std::size_t> order(stages_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      for (std::size_t i = 0; i < order.size(); ++i) plan.stages[i] = stages_[order[i]];
      if (!in_pipeline_order(plan)) continue;
      take_if_it_fits(pipeline_plan_below(problem_, plan.stages, enumeration_.value()));
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
    if (!throughput::keeps_rules(problem_, plan)) return;
    enumeration_.take(std::move(plan));
    if (bound_) bound_->look_below(enumeration_.value());
  }

  const Problem& problem_;
  Enumeration enumeration_;
  MemoryLedger ledger_;
  Placement placement_;
  bool ordered_;  // the plan depends on the order of its stages
  std::vector<GroupId> order_;
  bool sharing_;
  std::optional<throughput::PlacedBound> bound_;  // where resources are shared
  std::vector<DeviceExchange> symmetries_;
  double open_ = kInfinity;  // the least bound of what was left when time was up
  std::vector<Stage> stages_;
};

}  // namespace

PlannerEntry exhaustive_throughput() {
  PlannerEntry entry = exhaustive<PipelineEnumeration>(Objective::throughput, candidate_count);
  entry.knows = kCommonAndSharing;
  return entry;
}

}  // namespace placewright
