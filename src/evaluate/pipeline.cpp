#include "evaluate/pipeline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "evaluate/device_graph.h"
#include "evaluate/memory.h"

namespace placewright {
namespace {

// Readers of the current tensor by device, emptied in time proportional to what was entered.
class ReaderCounts {
 public:
  explicit ReaderCounts(std::size_t device_count) : by_pass_(device_count) {}

  void add(DeviceId device, bool backward) {
    auto& count = by_pass_[device];
    if (count[0] == 0 && count[1] == 0) devices_.push_back(device);
    ++count[backward ? 1 : 0];
  }
  [[nodiscard]] bool any(DeviceId device, bool backward) const {
    return by_pass_[device][backward ? 1 : 0] > 0;
  }
  [[nodiscard]] std::span<const DeviceId> devices() const { return devices_; }
  void clear() {
    for (const DeviceId device : devices_) by_pass_[device] = {};
    devices_.clear();
  }

 private:
  Table<DeviceId, std::array<std::uint32_t, 2>> by_pass_;
  std::vector<DeviceId> devices_;
};

// Adds what the tensor's transfers cost; `readers` are its consumers away from the producer.
void charge_transfers(const Problem& problem, TensorId tensor, DeviceId from, bool backward,
                      const ReaderCounts& readers, Table<DeviceId, DeviceLoad>& loads) {
  const auto send = [&](double time) {
    PassLoad& pass = loads[from].pass(backward);
    pass.out += time;
    pass.compute += problem.device(from).send_overhead;
  };
  const auto receive = [&](DeviceId to, double time) {
    PassLoad& pass = loads[to].pass(readers.any(to, backward) ? backward : !backward);
    pass.in += time;
    pass.compute += problem.device(to).receive_overhead;
  };
  if (problem.interconnect() == InterconnectKind::links) {
    for (const DeviceId to : readers.devices()) {
      const double time = problem.link_time(tensor, from, to);
      send(time);
      receive(to, time);
    }
    return;
  }
  const double time = problem.host_time(tensor);
  if (!readers.devices().empty() && !problem.on_host(from)) send(time);
  for (const DeviceId to : readers.devices()) {
    if (!problem.on_host(to)) receive(to, time);
  }
}

Placement placement_of(const Problem& problem, std::span<const Stage> stages) {
  Placement placement(problem.op_count());
  Table<DeviceId, char> taken(problem.device_count(), 0);
  std::size_t placed = 0;
  for (const Stage& stage : stages) {
    if (stage.devices.empty()) throw std::invalid_argument("a stage has no device");
    for (const DeviceId device : stage.devices) {
      if (taken[device]++ != 0) {
        throw std::invalid_argument(
            fmt::format("device '{}' is in two stages", problem.device(device).name));
      }
    }
    for (const OpId op : stage.ops) {
      if (placement[op].valid()) {
        throw std::invalid_argument(fmt::format("op '{}' is in two stages", problem.op(op).name));
      }
      placement[op] = stage.devices.front();
      ++placed;
    }
  }
  if (placed != problem.op_count()) throw std::invalid_argument("an op is in no stage");
  return placement;
}

// What counts for the value: the largest `first` plus the largest `second` of all devices.
struct PhaseLoads {
  double first = 0;   // forward; interleaved: both passes
  double second = 0;  // backward; interleaved: nothing

  void raise_to(const PhaseLoads& other) {
    first = std::max(first, other.first);
    second = std::max(second, other.second);
  }
};

PhaseLoads phase_loads(const DeviceLoad& load, const Rules& rules) {
  if (rules.training == TrainingMode::interleaved) return {load.both().load(rules.transfers), 0};
  return {load.forward.load(rules.transfers), load.backward.load(rules.transfers)};
}

std::vector<PhaseLoads> stage_loads(const Problem& problem, const Placement& placement,
                                    std::span<const Stage> stages) {
  const Rules& rules = problem.rules();
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, placement);
  const Table<DeviceId, double> resident = resident_memory(problem, placement);
  const bool exchanges = problem.has_backward_ops() && rules.replica_bandwidth > 0;

  std::vector<PhaseLoads> result;
  for (const Stage& stage : stages) {
    const DeviceId device = stage.devices.front();
    const auto replicas = static_cast<double>(stage.devices.size());
    PhaseLoads load = phase_loads(loads[device], rules);
    load.first /= replicas;
    load.second /= replicas;
    if (exchanges) {
      const double exchange =
          (replicas - 1) / replicas * resident[device] / rules.replica_bandwidth;
      (rules.training == TrainingMode::interleaved ? load.first : load.second) += exchange;
    }
    result.push_back(load);
  }
  return result;
}

double value_of(std::span<const PhaseLoads> loads) {
  PhaseLoads most;
  for (const PhaseLoads& load : loads) most.raise_to(load);
  return most.first + most.second;
}

// Earliest topological rank of the forward ops on each device; behind all of them, of its backward
// ops where it has no others; the largest value where it is empty.
Table<DeviceId, std::size_t> first_ranks(const Problem& problem, const Placement& placement) {
  constexpr std::size_t kEmpty = std::numeric_limits<std::size_t>::max();
  Table<DeviceId, std::size_t> first(problem.device_count(), kEmpty);
  for (const OpId op : problem.ops()) {
    const std::size_t rank =
        problem.topological_rank(op) + (problem.op(op).backward ? problem.op_count() : 0);
    first[placement[op]] = std::min(first[placement[op]], rank);
  }
  return first;
}

// Devices with ops in a topological order of the device graph. When a cycle leaves no device
// without predecessors, the one with the earliest op goes first.
std::vector<DeviceId> pipeline_order(const Problem& problem, const Placement& placement) {
  const auto successors = device_graph(problem, placement);
  const auto first = first_ranks(problem, placement);
  Table<DeviceId, std::size_t> waiting(problem.device_count(), 0);
  std::vector<DeviceId> left;
  for (const DeviceId device : problem.devices()) {
    for (const DeviceId successor : successors[device]) ++waiting[successor];
    if (first[device] != std::numeric_limits<std::size_t>::max()) left.push_back(device);
  }
  std::ranges::sort(left, {}, [&](DeviceId device) { return first[device]; });

  std::vector<DeviceId> order;
  while (!left.empty()) {
    auto next = std::ranges::find_if(left, [&](DeviceId device) { return waiting[device] == 0; });
    if (next == left.end()) next = left.begin();
    const DeviceId device = *next;
    left.erase(next);
    order.push_back(device);
    for (const DeviceId successor : successors[device]) {
      --waiting[successor];
    }
  }
  return order;
}

}  // namespace

PassLoad DeviceLoad::both() const {
  return {forward.compute + backward.compute, forward.in + backward.in, forward.out + backward.out};
}

double DeviceLoad::load(const Rules& rules) const {
  const PhaseLoads phases = phase_loads(*this, rules);
  return phases.first + phases.second;
}

Table<DeviceId, DeviceLoad> pipeline_loads(const Problem& problem, const Placement& placement) {
  Table<DeviceId, DeviceLoad> loads(problem.device_count());
  for (const OpId op : problem.ops()) {
    const DeviceId device = placement[op];
    loads[device].pass(problem.op(op).backward).compute += problem.time(op, device);
  }
  ReaderCounts readers(problem.device_count());
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    const DeviceId from = placement[producer];
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      if (to != from) readers.add(to, problem.op(consumer).backward);
    }
    charge_transfers(problem, tensor, from, problem.op(producer).backward, readers, loads);
    readers.clear();
  }
  return loads;
}

double pipeline_value(const Problem& problem, const Placement& placement) {
  PhaseLoads most;
  for (const DeviceLoad& load : pipeline_loads(problem, placement)) {
    most.raise_to(phase_loads(load, problem.rules()));
  }
  return most.first + most.second;
}

double pipeline_value(const Problem& problem, std::span<const Stage> stages) {
  return value_of(stage_loads(problem, placement_of(problem, stages), stages));
}

std::vector<Stage> stages_of(const Problem& problem, const Placement& placement) {
  const auto loads = pipeline_loads(problem, placement);
  Table<DeviceId, std::vector<OpId>> ops(problem.device_count());
  for (const OpId op : problem.ops()) ops[placement[op]].push_back(op);
  std::vector<Stage> stages;
  for (const DeviceId device : pipeline_order(problem, placement)) {
    stages.push_back({{device}, std::move(ops[device]), loads[device].load(problem.rules())});
  }
  return stages;
}

Plan pipeline_plan(const Problem& problem, Placement placement) {
  Plan plan;
  plan.stages = stages_of(problem, placement);
  plan.value = pipeline_value(problem, placement);
  plan.placement = std::move(placement);
  return plan;
}

Plan pipeline_plan(const Problem& problem, std::vector<Stage> stages) {
  Plan plan;
  plan.placement = placement_of(problem, stages);
  const std::vector<PhaseLoads> loads = stage_loads(problem, plan.placement, stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].load = loads[i].first + loads[i].second;
  }
  plan.value = value_of(loads);
  plan.stages = std::move(stages);
  return plan;
}

}  // namespace placewright
