#include "evaluate/simulate.h"

#include <algorithm>
#include <vector>

#include "evaluate/memory.h"
#include "evaluate/pipeline.h"

namespace placewright {
namespace {

// Times this close are the same moment: what ends then makes room for what starts.
constexpr double kMoment = 1e-9;

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
        changes_(problem.device_count()),
        last_use_(problem.device_count(), 0) {}

  void run() {
    for (const OpId op : problem_.ops()) {
      simulation_.devices[placement_[op]].busy += schedule_.end[op] - schedule_.start[op];
      simulation_.end = std::max(simulation_.end, schedule_.end[op]);
    }
    for (const Transfer& transfer : schedule_.transfers) add(transfer);
    hold_tensors();
    const double moment = kMoment * simulation_.end;
    for (const DeviceId device : problem_.devices()) {
      DeviceSummary& summary = simulation_.devices[device];
      summary.idle = simulation_.end * problem_.device(device).lanes - summary.busy;
      find_peak(changes_[device], moment, summary);
    }
  }

 private:
  void add(const Transfer& transfer) {
    const double length = transfer.end - transfer.start;
    if (transfer.from.valid()) simulation_.devices[transfer.from].sending += length;
    if (transfer.to.valid()) simulation_.devices[transfer.to].receiving += length;
    simulation_.end = std::max(simulation_.end, transfer.end);
  }

  void hold(DeviceId device, double start, double end, double bytes) {
    if (bytes == 0 || in_host_memory(problem_, device)) return;
    changes_[device].push_back({start, bytes});
    changes_[device].push_back({end, -bytes});
  }

  // The tensor's last use on each device that reads it, at least `least`.
  void find_last_uses(TensorId tensor, double least) {
    for (const OpId reader : problem_.consumers(tensor)) last_use_[placement_[reader]] = least;
    for (const OpId reader : problem_.consumers(tensor)) {
      double& last = last_use_[placement_[reader]];
      last = std::max(last, schedule_.end[reader]);
    }
  }

  void hold_tensors() {
    const auto transfers = transfers_by_tensor();
    for (const TensorId tensor : problem_.tensors()) {
      const OpId producer = problem_.producer(tensor);
      const DeviceId home = placement_[producer];
      last_use_[home] = schedule_.end[producer];
      find_last_uses(tensor, schedule_.end[producer]);
      double home_end = last_use_[home];
      for (const Transfer* transfer : transfers[tensor]) {
        if (transfer->from.valid()) home_end = std::max(home_end, transfer->end);
        if (!transfer->to.valid()) continue;
        hold(transfer->to, transfer->start, std::max(transfer->end, last_use_[transfer->to]),
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

  static void find_peak(std::vector<Change>& changes, double moment, DeviceSummary& summary) {
    for (Change& change : changes) {
      if (change.bytes < 0) change.time -= moment;
    }
    std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.bytes < b.bytes;
    });
    double level = 0;
    double highest = 0;
    for (const Change& change : changes) {
      level += change.bytes;
      if (level <= highest) continue;
      highest = level;
      summary.peak_time = change.time;
    }
    summary.peak = summary.resident + highest;
  }

  const Problem& problem_;
  const Placement& placement_;
  const Schedule& schedule_;
  Simulation& simulation_;
  Table<DeviceId, std::vector<Change>> changes_;
  Table<DeviceId, double> last_use_;
};

// Bytes of the tensors that each device produces or receives for one sample.
Table<DeviceId, double> touched_bytes(const Problem& problem, const Placement& placement) {
  Table<DeviceId, double> bytes(problem.device_count(), 0);
  Table<DeviceId, TensorId> received(problem.device_count());
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId home = placement[problem.producer(tensor)];
    if (!in_host_memory(problem, home)) bytes[home] += problem.tensor(tensor).bytes;
    for (const OpId reader : problem.consumers(tensor)) {
      const DeviceId device = placement[reader];
      if (device == home || received[device] == tensor || in_host_memory(problem, device)) continue;
      received[device] = tensor;
      bytes[device] += problem.tensor(tensor).bytes;
    }
  }
  return bytes;
}

void simulate_pipeline(const Problem& problem, const Plan& plan, Simulation& simulation) {
  const std::vector<Stage> stages =
      plan.stages.empty() ? stages_of(problem, plan.placement) : plan.stages;
  const Table<DeviceId, double> touched = touched_bytes(problem, plan.placement);
  const Table<DeviceId, DeviceLoad> loads = pipeline_loads(problem, plan.placement);
  simulation.end = plan.value;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const DeviceId first = stages[i].devices.front();
    const auto replicas = static_cast<double>(stages[i].devices.size());
    const double samples = problem.has_backward_ops() ? static_cast<double>(stages.size() - i) : 1;
    const PassLoad load = loads[first].both();
    const DeviceSummary whole = simulation.devices[first];
    for (const DeviceId device : stages[i].devices) {
      DeviceSummary& summary = simulation.devices[device];
      summary = whole;
      summary.busy = stages[i].load;
      summary.idle = std::max(0.0, simulation.end - stages[i].load);
      summary.sending = load.out / replicas;
      summary.receiving = load.in / replicas;
      summary.peak = whole.resident + samples * touched[first];
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
    summary.idle = std::max(0.0, simulation.end - summary.busy);
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
    const double memory = problem.device(device).memory;
    const double peak = simulation.devices[device].peak;
    if (within_memory(peak, memory) || peak - memory <= most) continue;
    most = peak - memory;
    worst = device;
  }
  return worst;
}

}  // namespace placewright
