#include "evaluate/simulate.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "evaluate/memory.h"
#include "evaluate/pipeline.h"

namespace placewright {
namespace {

// Times this close are the same moment: what ends then makes room for what starts.
constexpr double kMoment = 1e-9;

// What is left of `whole`; the rounding of a sum is not idle time.
double idle_time(double whole, double busy) {
  return whole - busy > kMoment * whole ? whole - busy : 0;
}

struct Change {
  double time;
  double bytes;
};

bool in_host_memory(const Problem& problem, DeviceId device) {
  return problem.interconnect() == InterconnectKind::host && problem.on_host(device);
}

class ScheduleSimulation {
 public:
  ScheduleSimulation(const Problem& problem, const Plan& plan, Simulation& simulation)
      : problem_(problem),
        placement_(plan.placement),
        schedule_(*plan.schedule),
        simulation_(simulation),
        changes_(problem.space_count()),
        last_use_(problem.space_count(), 0) {}

  void run() {
    for (const OpId op : problem_.ops()) {
      simulation_.devices[placement_[op]].busy += schedule_.end[op] - schedule_.start[op];
      simulation_.end = std::max(simulation_.end, schedule_.end[op]);
    }
    for (const Transfer& transfer : schedule_.transfers) add(transfer);
    hold_tensors();
    Table<SpaceId, Highest> highest(problem_.space_count());
    for (const SpaceId space : problem_.spaces()) {
      highest[space] = highest_level(changes_[space], kMoment * simulation_.end);
    }
    for (const DeviceId device : problem_.devices()) {
      DeviceSummary& summary = simulation_.devices[device];
      summary.idle = idle_time(simulation_.end * problem_.device(device).lanes, summary.busy);
      summary.peak = summary.resident + highest[problem_.space(device)].level;
      summary.peak_time = highest[problem_.space(device)].time;
    }
  }

 private:
  void add(const Transfer& transfer) {
    const double length = transfer.end - transfer.start;
    if (transfer.from.valid()) simulation_.devices[transfer.from].sending += length;
    if (transfer.to.valid()) simulation_.devices[transfer.to].receiving += length;
    simulation_.end = std::max(simulation_.end, transfer.end);
  }

  struct Highest {
    double level = 0;
    double time = 0;  // when it is first reached
  };

  [[nodiscard]] SpaceId space_of(OpId op) const { return problem_.space(placement_[op]); }

  void hold(DeviceId device, double start, double end, double bytes) {
    if (bytes == 0 || in_host_memory(problem_, device)) return;
    changes_[problem_.space(device)].push_back({start, bytes});
    changes_[problem_.space(device)].push_back({end, -bytes});
  }

  // The tensor's last use in each space that reads it, at least `least`.
  void find_last_uses(TensorId tensor, double least) {
    for (const OpId reader : problem_.consumers(tensor)) last_use_[space_of(reader)] = least;
    for (const OpId reader : problem_.consumers(tensor)) {
      double& last = last_use_[space_of(reader)];
      last = std::max(last, schedule_.end[reader]);
    }
  }

  void hold_tensors() {
    const auto transfers = transfers_by_tensor();
    for (const TensorId tensor : problem_.tensors()) {
      const OpId producer = problem_.producer(tensor);
      const DeviceId home = placement_[producer];
      last_use_[space_of(producer)] = schedule_.end[producer];
      find_last_uses(tensor, schedule_.end[producer]);
      double home_end = last_use_[space_of(producer)];
      for (const Transfer* transfer : transfers[tensor]) {
        if (transfer->from.valid()) home_end = std::max(home_end, transfer->end);
        if (!transfer->to.valid()) continue;
        const double last_use = last_use_[problem_.space(transfer->to)];
        hold(transfer->to, transfer->start, std::max(transfer->end, last_use),
             problem_.tensor(tensor).bytes);
      }
      hold(home, schedule_.start[producer], home_end, problem_.tensor(tensor).bytes);
    }
  }

  [[nodiscard]] Rows<TensorId, const Transfer*> transfers_by_tensor() const {
    std::vector<std::pair<TensorId, const Transfer*>> pairs;
    pairs.reserve(schedule_.transfers.size());
    for (const Transfer& transfer : schedule_.transfers) {
      pairs.emplace_back(transfer.tensor, &transfer);
    }
    return Rows<TensorId, const Transfer*>::from_pairs(problem_.tensor_count(), pairs);
  }

  static Highest highest_level(std::vector<Change>& changes, double moment) {
    for (Change& change : changes) {
      if (change.bytes < 0) change.time -= moment;
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    double level = 0;
    Highest highest;
    for (const Change& change : changes) {
      level += change.bytes;
      if (level > highest.level) highest = {level, change.time};
    }
    return highest;
  }

  const Problem& problem_;
  const Placement& placement_;
  const Schedule& schedule_;
  Simulation& simulation_;
  Table<SpaceId, std::vector<Change>> changes_;
  Table<SpaceId, double> last_use_;
};

// A pipeline's stages, and what each memory space holds of them. A replica holds the whole stage.
class StageMemory {
 public:
  StageMemory(const Problem& problem, std::span<const Stage> stages)
      : problem_(problem), stages_(stages), stage_of_(problem.op_count()) {
    const std::size_t loop = loop_of(problem, stages);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (const OpId op : stages[i].ops) stage_of_[op] = i;
      samples_.push_back(samples_in_flight(problem, {i, stages.size(), loop}));
    }
  }

  [[nodiscard]] MemoryLedger resident() const {
    MemoryLedger ledger(problem_);
    Table<SpaceId, const Stage*> holds(problem_.space_count(), nullptr);
    for (const Stage& stage : stages_) {
      for (const DeviceId device : stage.devices) {
        if (std::exchange(holds[problem_.space(device)], &stage) == &stage) continue;
        for (const OpId op : stage.ops) ledger.add(op, device);
      }
    }
    return ledger;
  }

  // Bytes of the tensors: each that is produced in the space or comes from another, for as many
  // samples as the stage has in flight that produces or reads it there; of several stages the most.
  [[nodiscard]] Table<SpaceId, double> in_flight() const {
    Table<SpaceId, double> bytes(problem_.space_count(), 0);
    Table<SpaceId, double> most(problem_.space_count(), 0);  // samples of the tensor at hand
    for (const TensorId tensor : problem_.tensors()) {
      for_each_place(tensor, [&](SpaceId space, double samples) {
        most[space] = std::max(most[space], samples);
      });
      for_each_place(tensor, [&](SpaceId space, double) {
        bytes[space] += std::exchange(most[space], 0) * problem_.tensor(tensor).bytes;
      });
    }
    return bytes;
  }

 private:
  // Calls `visit(space, samples in flight)` for each device that produces or reads the tensor.
  template <class Visit>
  void for_each_place(TensorId tensor, Visit visit) const {
    const auto visit_stage_of = [&](OpId op) {
      const std::size_t stage = stage_of_[op];
      for (const DeviceId device : stages_[stage].devices) {
        if (!in_host_memory(problem_, device)) visit(problem_.space(device), samples_[stage]);
      }
    };
    visit_stage_of(problem_.producer(tensor));
    for (const OpId reader : problem_.consumers(tensor)) visit_stage_of(reader);
  }

  const Problem& problem_;
  std::span<const Stage> stages_;
  Table<OpId, std::size_t> stage_of_;
  std::vector<double> samples_;  // in flight, by stage
};

void simulate_pipeline(const Problem& problem, const Plan& plan, Simulation& simulation) {
  const std::vector<Stage> stages =
      plan.stages.empty() ? stages_of(problem, plan.placement) : plan.stages;
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, plan.placement);
  const StageMemory memory(problem, stages);
  const MemoryLedger resident = memory.resident();
  const Table<SpaceId, double> in_flight = memory.in_flight();
  simulation.end = plan.value;
  for (const Stage& stage : stages) {
    const DeviceId first = stage.devices.front();
    const auto replicas = static_cast<double>(stage.devices.size());
    const PassLoad load = loads[first].both();
    for (const DeviceId device : stage.devices) {
      DeviceSummary& summary = simulation.devices[device];
      summary.ops = stage.ops.size();
      summary.busy = stage.load;
      summary.idle = idle_time(simulation.end, stage.load);
      summary.sending = load.out / replicas;
      summary.receiving = load.in / replicas;
      summary.resident = resident.used(device);
      summary.peak = summary.resident + in_flight[problem.space(device)];
    }
  }
}

void simulate_calls(const Problem& problem, const Plan& plan, Simulation& simulation) {
  for (const Call& call : plan.calls) {
    simulation.devices[call.device].busy += call.end - call.start;
    simulation.end = std::max(simulation.end, call.end);
  }
  simulation.end = std::max(simulation.end, plan.value);
  for (const OpId op : problem.ops()) {
    const DeviceId device = plan.placement[op];
    if (problem.on_host(device)) simulation.devices[device].busy += problem.time(op, device);
  }
  for (DeviceSummary& summary : simulation.devices) {
    summary.idle = idle_time(simulation.end, summary.busy);
  }
}

}  // namespace

Simulation simulate(const Problem& problem, const Plan& plan) {
  Simulation simulation;
  simulation.devices = Table<DeviceId, DeviceSummary>(problem.device_count());
  const MemoryLedger memory(problem, plan.placement);
  for (const DeviceId device : problem.devices()) {
    simulation.devices[device].resident = memory.used(device);
    simulation.devices[device].peak = memory.used(device);
  }
  for (const OpId op : problem.ops()) ++simulation.devices[plan.placement[op]].ops;
  if (plan.schedule) {
    ScheduleSimulation(problem, plan, simulation).run();
  } else if (problem.objective() == Objective::throughput) {
    simulate_pipeline(problem, plan, simulation);
  } else {
    simulate_calls(problem, plan, simulation);
  }
  return simulation;
}

std::optional<DeviceId> device_over_peak(const Problem& problem, const Simulation& simulation) {
  std::optional<DeviceId> worst;
  double most = 0;
  for (const DeviceId device : problem.devices()) {
    const double memory = problem.space_memory(problem.space(device));
    const double peak = simulation.devices[device].peak;
    if (within_memory(peak, memory) || peak - memory <= most) continue;
    most = peak - memory;
    worst = device;
  }
  return worst;
}

}  // namespace placewright
