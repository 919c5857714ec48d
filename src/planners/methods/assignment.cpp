#include "planners/methods/assignment.h"

#include <algorithm>
#include <numeric>

#include "evaluate/memory.h"

namespace placewright::calls {
namespace {

constexpr Slot kNowhere = -1;

// Which steps of a walk must be on one device: those with ops of a common group.
class Clusters {
 public:
  explicit Clusters(std::size_t count) : leader_(count) {
    std::iota(leader_.begin(), leader_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t one) {
    while (leader_[one] != one) one = leader_[one] = leader_[leader_[one]];
    return one;
  }
  void join(std::size_t a, std::size_t b) { leader_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> leader_;
};

class WalkAssignment {
 public:
  WalkAssignment(const Problem& problem, const CallEvaluator& evaluator, const CallGraph& graph,
                 const CallWalk& walk)
      : problem_(problem),
        evaluator_(evaluator),
        graph_(graph),
        walk_(walk),
        ledger_(problem),
        slots_(problem.op_count(), kNowhere),
        calls_(problem.device_count(), 0) {}

  std::optional<Slots> run() {
    if (!pack_calls()) return std::nullopt;
    for (std::size_t step = 0; step < walk_.steps.size(); ++step) {
      place(step, device_of_step_[step]);
    }
    place_the_rest();
    if (std::ranges::find(slots_, kNowhere) != slots_.end()) return std::nullopt;
    return slots_;
  }

 private:
  [[nodiscard]] bool is_call(std::size_t step) const {
    return walk_.steps[step].accelerator_class != CallIdeals::Step::kHost;
  }

  // Clusters of calls to devices of their class.
  bool pack_calls() {
    const std::size_t steps = walk_.steps.size();
    Clusters clusters(steps);
    Table<GroupId, std::size_t> call_of_group(problem_.group_count(), steps);
    std::vector<double> bytes(steps, 0);
    std::vector<int> calls(steps, 0);
    for_each_op([&](std::size_t step, OpId op) {
      if (!is_call(step)) return;
      std::size_t& known = call_of_group[problem_.group(op)];
      if (known < steps) clusters.join(step, known);
      known = step;
    });
    for (std::size_t step = 0; step < steps; ++step) {
      if (is_call(step)) ++calls[clusters.find(step)];
    }
    for_each_op([&](std::size_t step, OpId op) {
      if (is_call(step)) bytes[clusters.find(step)] += problem_.memory(op);
    });
    std::vector<std::size_t> order;
    for (std::size_t step = 0; step < steps; ++step) {
      if (calls[step] > 0) order.push_back(step);
    }
    std::ranges::stable_sort(order,
                             [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
    std::vector<DeviceId> device_of_cluster(steps);
    Table<DeviceId, double> used(problem_.device_count(), 0);
    Table<DeviceId, int> taken(problem_.device_count(), 0);
    for (const std::size_t cluster : order) {
      DeviceId best;
      const auto one = static_cast<std::size_t>(walk_.steps[cluster].accelerator_class);
      for (const DeviceId device : graph_.classes[one].devices) {
        if (taken[device] + calls[cluster] > problem_.rules().calls_per_device ||
            !within_memory(used[device] + bytes[cluster], problem_.device(device).memory)) {
          continue;
        }
        if (!best.valid() || taken[device] < taken[best]) best = device;
      }
      if (!best.valid()) return false;
      device_of_cluster[cluster] = best;
      used[best] += bytes[cluster];
      taken[best] += calls[cluster];
    }
    for (std::size_t step = 0; step < steps; ++step) {
      device_of_step_.push_back(is_call(step) ? device_of_cluster[clusters.find(step)]
                                              : DeviceId{});
    }
    return true;
  }

  template <class Visit>
  void for_each_op(Visit visit) const {
    for (std::size_t step = 0; step < walk_.steps.size(); ++step) {
      for (const CallGraph::Node node : walk_.steps[step].nodes) {
        for (const OpId op : graph_.ops[node]) visit(step, op);
      }
    }
  }

  void place(std::size_t step, DeviceId device) {
    const Slot slot =
        device.valid() ? evaluator_.slot(device, calls_[device]++) : CallEvaluator::kHostSlot;
    for (const CallGraph::Node node : walk_.steps[step].nodes) {
      for (const OpId op : graph_.ops[node]) put(op, slot);
    }
  }

  void put(OpId op, Slot slot) {
    slots_[op.index()] = slot;
    ledger_.add(op, evaluator_.device(slot));
  }

  [[nodiscard]] bool may(OpId op, Slot slot) const {
    const DeviceId device = evaluator_.device(slot);
    if (!device.valid() || !problem_.group_allowed(problem_.group(op), device)) return false;
    for (const OpId mate : problem_.group_ops(problem_.group(op))) {
      const Slot other = slots_[mate.index()];
      if (other != kNowhere && evaluator_.device(other) != device) return false;
    }
    return ledger_.fits(op, device);
  }

  // Sinks follow their producers along the order, sources their consumers against it.
  void place_the_rest() {
    const auto order = problem_.topological_order();
    const auto join = [&](OpId op, std::span<const OpId> neighbours) {
      if (slots_[op.index()] != kNowhere) return;
      for (const OpId other : neighbours) {
        const Slot slot = slots_[other.index()];
        if (slot != kNowhere && may(op, slot)) return put(op, slot);
      }
    };
    for (const OpId op : order) join(op, problem_.predecessors(op));
    std::for_each(order.rbegin(), order.rend(),
                  [&](OpId op) { join(op, problem_.successors(op)); });
    for (const OpId op : order) {
      if (slots_[op.index()] == kNowhere && may(op, CallEvaluator::kHostSlot)) {
        put(op, CallEvaluator::kHostSlot);
      }
    }
  }

  const Problem& problem_;
  const CallEvaluator& evaluator_;
  const CallGraph& graph_;
  const CallWalk& walk_;
  MemoryLedger ledger_;
  Slots slots_;
  std::vector<DeviceId> device_of_step_;
  Table<DeviceId, int> calls_;
};

}  // namespace

Slots slots_of_plan(const Problem& problem, const CallEvaluator& evaluator, const Plan& plan) {
  Slots slots = all_on_host(problem);
  std::vector<const Call*> calls;
  for (const Call& call : plan.calls) calls.push_back(&call);
  std::ranges::stable_sort(calls, {}, [](const Call* call) { return call->start; });
  Table<DeviceId, int> used(problem.device_count(), 0);
  for (const Call* call : calls) {
    const Slot slot = evaluator.slot(call->device, used[call->device]++);
    for (const OpId op : call->ops) slots[op.index()] = slot;
  }
  return slots;
}

bool keeps_rules(const Problem& problem, const CallEvaluator& evaluator, const Slots& slots) {
  MemoryLedger ledger(problem);
  for (const OpId op : problem.ops()) {
    const DeviceId device = evaluator.device(slots[op.index()]);
    const GroupId group = problem.group(op);
    const OpId mate = problem.group_ops(group).front();
    if (!device.valid() || !problem.group_allowed(group, device) ||
        evaluator.device(slots[mate.index()]) != device) {
      return false;
    }
    ledger.add(op, device);
  }
  return ledger.within();
}

std::optional<Plan> plan_of_slots(const Problem& problem, CallEvaluator& evaluator,
                                  const Slots& slots) {
  if (!keeps_rules(problem, evaluator, slots)) return std::nullopt;
  return evaluator.plan(slots);
}

std::optional<Slots> slots_of_walk(const Problem& problem, const CallEvaluator& evaluator,
                                   const CallGraph& graph, const CallWalk& walk) {
  return WalkAssignment(problem, evaluator, graph, walk).run();
}

Slots all_on_host(const Problem& problem) {
  return Slots(problem.op_count(), CallEvaluator::kHostSlot);
}

}  // namespace placewright::calls
