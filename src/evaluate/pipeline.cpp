#include "evaluate/pipeline.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "evaluate/device_graph.h"
#include "evaluate/memory.h"
#include "evaluate/stage_arrangement.h"

namespace placewright {
namespace {

// Who reads the current tensor away from its producer, by device and by memory space; emptied in
// time proportional to what was entered.
class Readers {
 public:
  struct InSpace {
    SpaceId space;
    OpId first;  // by topological rank
    bool forward = false;
    bool backward = false;
  };
  struct OnDevice {
    DeviceId device;
    bool forward = false;
    bool backward = false;
  };

  explicit Readers(const Problem& problem)
      : problem_(problem),
        device_slot_(problem.device_count(), 0),
        space_slot_(problem.space_count(), 0) {}

  void add(OpId reader, DeviceId device) {
    const bool backward = problem_.op(reader).backward;
    OnDevice& there = slot(devices_, device_slot_[device], OnDevice{device});
    InSpace& space =
        slot(spaces_, space_slot_[problem_.space(device)], InSpace{problem_.space(device), reader});
    if (problem_.topological_rank(reader) < problem_.topological_rank(space.first)) {
      space.first = reader;
    }
    (backward ? there.backward : there.forward) = true;
    (backward ? space.backward : space.forward) = true;
  }
  [[nodiscard]] std::span<const OnDevice> devices() const { return devices_; }
  [[nodiscard]] std::span<const InSpace> spaces() const { return spaces_; }
  void clear() {
    for (const OnDevice& reader : devices_) device_slot_[reader.device] = 0;
    for (const InSpace& reader : spaces_) space_slot_[reader.space] = 0;
    devices_.clear();
    spaces_.clear();
  }

 private:
  // `position` counts from 1; 0: not entered yet.
  template <class Record>
  static Record& slot(std::vector<Record>& records, std::uint32_t& position, Record fresh) {
    if (position == 0) {
      records.push_back(fresh);
      position = static_cast<std::uint32_t>(records.size());
    }
    return records[position - 1];
  }

  const Problem& problem_;
  Table<DeviceId, std::uint32_t> device_slot_;
  Table<SpaceId, std::uint32_t> space_slot_;
  std::vector<OnDevice> devices_;
  std::vector<InSpace> spaces_;
};

// The pass of what a reader takes in: the producer's, if the reader has ops of that pass.
template <class Reader>
bool pass_of(const Reader& reader, bool producer_backward) {
  const bool same = producer_backward ? reader.backward : reader.forward;
  return same ? producer_backward : !producer_backward;
}

// Adds what the tensor's transfers and hand-overs cost.
void charge_tensor(const Problem& problem, TensorId tensor, const Placement& placement,
                   const Readers& readers, Table<DeviceId, DeviceLoad>& loads) {
  const OpId producer = problem.producer(tensor);
  const DeviceId from = placement[producer];
  const bool backward = problem.op(producer).backward;
  const bool host = problem.interconnect() == InterconnectKind::host;
  const auto send = [&](double time) {
    PassLoad& pass = loads[from].pass(backward);
    pass.out += time;
    pass.compute += problem.send_overhead(tensor, from);
  };
  bool leaves = false;
  for (const Readers::InSpace& reader : readers.spaces()) {
    if (reader.space == problem.space(from)) {
      send(0);  // a hand-over: nothing travels
      continue;
    }
    const DeviceId to = placement[reader.first];
    const double time = host ? problem.host_time(tensor) : problem.link_time(tensor, from, to);
    if (!host || (!leaves && !problem.on_host(from))) send(time);
    leaves = true;
    if (!host || !problem.on_host(to)) loads[to].pass(pass_of(reader, backward)).in += time;
  }
  for (const Readers::OnDevice& reader : readers.devices()) {
    const DeviceId to = reader.device;
    if (host && problem.on_host(to) && !problem.same_space(from, to)) continue;
    loads[to].pass(pass_of(reader, backward)).compute += problem.receive_overhead(tensor, to);
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

// Spaces that hold the stage's weights: replicas in one space share them.
double copies_of(const Problem& problem, const Stage& stage) {
  std::vector<SpaceId> spaces;
  for (const DeviceId device : stage.devices) spaces.push_back(problem.space(device));
  std::ranges::sort(spaces);
  return static_cast<double>(std::ranges::unique(spaces).begin() - spaces.begin());
}

double resident_bytes(const Problem& problem, const Stage& stage) {
  MemoryLedger ledger(problem);
  for (const OpId op : stage.ops) ledger.add(op, stage.devices.front());
  return ledger.used(stage.devices.front());
}

std::vector<PhaseLoads> stage_loads(const Problem& problem, const Placement& placement,
                                    std::span<const Stage> stages) {
  const Rules& rules = problem.rules();
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, placement);
  const bool exchanges = problem.has_backward_ops() && rules.replica_bandwidth > 0;

  std::vector<PhaseLoads> result;
  for (const Stage& stage : stages) {
    const DeviceId device = stage.devices.front();
    const auto replicas = static_cast<double>(stage.devices.size());
    PhaseLoads load = phase_loads(loads[device], rules);
    load.first /= replicas;
    load.second /= replicas;
    if (exchanges && replicas > 1) {
      const double spaces = copies_of(problem, stage);
      const double exchange =
          (spaces - 1) / spaces * resident_bytes(problem, stage) / rules.replica_bandwidth;
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

// Of each stage what one pass takes.
std::vector<double> pass_loads(std::span<const PhaseLoads> loads, double PhaseLoads::*pass) {
  std::vector<double> of_pass;
  for (const PhaseLoads& load : loads) of_pass.push_back(load.*pass);
  return of_pass;
}

// Offsets that are left out are those of a list. Stays as it is where no list can be made: a stage
// takes more of a resource than there is, or what is stated is no time.
void list_offsets(const Problem& problem, std::span<const double> loads,
                  std::optional<double> Stage::*offset, std::span<Stage> stages) {
  std::vector<std::optional<double>> stated;
  for (const Stage& stage : stages) stated.push_back(stage.*offset);
  const bool times = std::ranges::all_of(stated, [](std::optional<double> each) {
    return !each || (*each >= 0 && *each < kInfinity);
  });
  if (!times) return;
  const Arrangement list = StageArrangements(problem, stages).listed(loads, stated);
  if (list.period == kInfinity) return;
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].*offset = list.offsets[i];
}

// Gives the stages loads and, where they share resources, offsets; answers the value.
double settle(const Problem& problem, std::span<const PhaseLoads> loads, std::span<Stage> stages,
              double below = 0) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].load = loads[i].first + loads[i].second;
  }
  const double value = value_of(loads);
  if (problem.resource_count() == 0 || value == kInfinity) return value;
  const bool phased = problem.rules().training == TrainingMode::phased;
  const StageArrangements arrangements(problem, stages);
  const PeriodEnd end = phased ? PeriodEnd::last_stage : PeriodEnd::wraps;
  const Arrangement first = arrangements.best(pass_loads(loads, &PhaseLoads::first), end, below);
  if (first.period == kInfinity) return kInfinity;
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].offset = first.offsets[i];
  if (!phased) return first.period;
  const Arrangement second = arrangements.best(pass_loads(loads, &PhaseLoads::second), end, below);
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].backward_offset = second.offsets[i];
  return first.period + second.period;
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
    if (!device.valid()) continue;
    loads[device].pass(problem.op(op).backward).compute += problem.time(op, device);
  }
  Readers readers(problem);
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId from = placement[problem.producer(tensor)];
    if (!from.valid()) continue;
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      if (to != from && to.valid()) readers.add(consumer, to);
    }
    charge_tensor(problem, tensor, placement, readers, loads);
    readers.clear();
  }
  return loads;
}

double pipeline_value(const Problem& problem, const Placement& placement) {
  if (problem.resource_count() > 0) return pipeline_plan(problem, placement).value;
  PhaseLoads most;
  for (const DeviceLoad& load : pipeline_loads(problem, placement)) {
    most.raise_to(phase_loads(load, problem.rules()));
  }
  return most.first + most.second;
}

// `interleaved`: the stages are dealt out to p spaces like cards, v to each, and q micro-batches
// make a round. Space r works q of its first stage, q of its second, ..., q of its first again; its
// backward actions go through its stages from the last. Stage c of the space gets the micro-batch
// back after `delay` forward actions of the space, and those for c come in bursts of q, one in
// every q x v.
double samples_in_flight(const Problem& problem, const StagePlace& stage) {
  if (!problem.has_backward_ops()) return 1;
  const Rules& rules = problem.rules();
  const double all = rules.micro_batches > 0 ? rules.micro_batches : kInfinity;
  if (rules.schedule == PipelineSchedule::gpipe) return all;
  if (rules.schedule == PipelineSchedule::one_forward_one_backward) {
    return std::min(all, static_cast<double>(stage.count - stage.number));
  }
  const std::size_t p = stage.loop;
  const std::size_t v = (stage.count + p - 1) / p;
  const auto step = static_cast<std::size_t>(rules.micro_batches);
  const std::size_t q = step == 0 ? p : step / std::max<std::size_t>(1, step / p);
  const std::size_t c = stage.number / p;
  const std::size_t r = stage.number % p;
  const std::size_t delay = 2 * (v - 1 - c) * q + 2 * (p - 1 - r) + 1;
  const std::size_t samples = delay / (q * v) * q + std::min(q, delay % (q * v));
  return std::min(all, static_cast<double>(samples));
}

double most_samples_in_flight(const Problem& problem) {
  if (!problem.has_backward_ops()) return 1;
  const Rules& rules = problem.rules();
  const auto devices = static_cast<double>(problem.device_count());
  const double all = rules.micro_batches > 0 ? rules.micro_batches : kInfinity;
  if (rules.schedule == PipelineSchedule::gpipe) return all;
  // Interleaved: at most two bursts of q, and q < 2p.
  const bool loops = rules.schedule == PipelineSchedule::interleaved;
  return std::min(all, loops ? 4 * devices : devices);
}

std::size_t loop_of(const Problem& problem, std::span<const Stage> stages) {
  std::vector<SpaceId> spaces;
  for (const Stage& stage : stages) spaces.push_back(problem.space(stage.devices.front()));
  std::ranges::sort(spaces);
  return static_cast<std::size_t>(std::ranges::unique(spaces).begin() - spaces.begin());
}

double pipeline_value(const Problem& problem, std::span<const Stage> stages) {
  return pipeline_plan(problem, std::vector<Stage>(stages.begin(), stages.end())).value;
}

std::vector<Stage> stages_of(const Problem& problem, const Placement& placement) {
  return pipeline_plan(problem, placement).stages;
}

std::vector<Stage> stages_to_evaluate(const Problem& problem, const Placement& placement) {
  Table<DeviceId, std::vector<OpId>> ops(problem.device_count());
  for (const OpId op : problem.ops()) ops[placement[op]].push_back(op);
  std::vector<Stage> stages;
  for (const DeviceId device : pipeline_order(problem, placement)) {
    stages.push_back({{device}, std::move(ops[device])});
  }
  return stages;
}

Plan pipeline_plan(const Problem& problem, Placement placement) {
  const auto loads = pipeline_loads(problem, placement);
  Plan plan;
  plan.stages = stages_to_evaluate(problem, placement);
  std::vector<PhaseLoads> phases;
  for (const Stage& stage : plan.stages) {
    phases.push_back(phase_loads(loads[stage.devices.front()], problem.rules()));
  }
  plan.value = settle(problem, phases, plan.stages);
  plan.placement = std::move(placement);
  return plan;
}

Plan pipeline_plan(const Problem& problem, std::vector<Stage> stages) {
  return pipeline_plan_below(problem, std::move(stages), 0);
}

Plan pipeline_plan_below(const Problem& problem, std::vector<Stage> stages, double below) {
  Plan plan;
  plan.placement = placement_of(problem, stages);
  plan.value = settle(problem, stage_loads(problem, plan.placement, stages), stages, below);
  plan.stages = std::move(stages);
  return plan;
}

void state_offsets(const Problem& problem, Plan& plan) {
  if (problem.resource_count() == 0 || plan.stages.empty()) return;
  const std::vector<PhaseLoads> loads = stage_loads(problem, plan.placement, plan.stages);
  if (value_of(loads) == kInfinity) return;
  list_offsets(problem, pass_loads(loads, &PhaseLoads::first), &Stage::offset, plan.stages);
  if (problem.rules().training == TrainingMode::interleaved) return;
  list_offsets(problem, pass_loads(loads, &PhaseLoads::second), &Stage::backward_offset,
               plan.stages);
}

}  // namespace placewright
