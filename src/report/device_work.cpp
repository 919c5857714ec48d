#include "report/device_work.h"

#include <algorithm>
#include <map>

#include "evaluate/activities.h"
#include "evaluate/pipeline.h"
#include "evaluate/simulate.h"

namespace placewright {
namespace {

// A tensor goes into a call that reads it from outside, and out of a call that others read from.
std::vector<Transfer> movements_of_calls(const Problem& problem, const Plan& plan) {
  constexpr std::size_t kHost = static_cast<std::size_t>(-1);
  Table<OpId, std::size_t> call_of(problem.op_count(), kHost);
  for (std::size_t call = 0; call < plan.calls.size(); ++call) {
    for (const OpId op : plan.calls[call].ops) call_of[op] = call;
  }
  std::vector<Transfer> movements;
  std::vector<std::size_t> readers;
  for (const TensorId tensor : problem.tensors()) {
    const std::size_t made_in = call_of[problem.producer(tensor)];
    readers.clear();
    for (const OpId reader : problem.consumers(tensor)) {
      if (call_of[reader] != made_in) readers.push_back(call_of[reader]);
    }
    if (readers.empty()) continue;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    const double length = problem.host_time(tensor);
    if (made_in != kHost) {
      movements.push_back({tensor, Leg::out, plan.calls[made_in].device, {}, 0, length});
    }
    for (const std::size_t call : readers) {
      if (call == kHost) continue;
      movements.push_back({tensor, Leg::in, {}, plan.calls[call].device, 0, length});
    }
  }
  return movements;
}

std::vector<Transfer> movements_of_pipeline(const Problem& problem, const Plan& plan) {
  const ActivityNetwork network(problem, plan.placement);
  std::vector<Transfer> movements = network.transfers;
  for (std::size_t i = 0; i < movements.size(); ++i) {
    movements[i].start = 0;
    movements[i].end = network.duration[ActivityId{network.op_count + i}];
  }
  return movements;
}

void add_movements(const std::vector<Transfer>& movements, Table<DeviceId, DeviceWork>& work) {
  for (const Transfer& transfer : movements) {
    const double length = transfer.end - transfer.start;
    if (transfer.from.valid()) work[transfer.from].out += length;
    if (transfer.to.valid()) work[transfer.to].in += length;
  }
}

void add_pipeline(const Problem& problem, const Plan& plan, Table<DeviceId, DeviceWork>& work) {
  const auto loads = pipeline_loads(problem, plan.placement);
  for (const Stage& stage : plan.stages) {
    const PassLoad load = loads[stage.devices.front()].both();
    const auto replicas = static_cast<double>(stage.devices.size());
    for (const DeviceId device : stage.devices) {
      work[device] = {stage.ops.size(), load.compute / replicas, load.in / replicas,
                      load.out / replicas, stage.load};
    }
  }
}

// A stretch of time during which a device holds some bytes more.
class Profile {
 public:
  void hold(double start, double end, double bytes) {
    if (bytes <= 0 || end <= start) return;
    changes_[start] += bytes;
    changes_[end] -= bytes;
  }

  // Bytes from a time on, `resident` included.
  [[nodiscard]] std::vector<std::pair<double, double>> steps(double resident,
                                                             std::size_t most_steps) const {
    std::vector<std::pair<double, double>> steps;
    double held = resident;
    if (changes_.empty() || changes_.begin()->first > 0) steps.emplace_back(0, held);
    for (const auto& [time, bytes] : changes_) {
      held += bytes;
      steps.emplace_back(time, held);
    }
    if (steps.size() > most_steps) thin(steps, most_steps);
    return steps;
  }

 private:
  static void thin(std::vector<std::pair<double, double>>& steps, std::size_t most_steps) {
    const double stretch = steps.back().first / static_cast<double>(most_steps - 1);
    std::vector<std::pair<double, double>> kept;
    for (const auto& [time, bytes] : steps) {
      const double begin = stretch * static_cast<double>(kept.size());
      if (kept.empty() || time >= begin) {
        kept.emplace_back(time, bytes);
      } else {
        kept.back().second = std::max(kept.back().second, bytes);
      }
    }
    kept.back().second = steps.back().second;
    steps = std::move(kept);
  }

  std::map<double, double> changes_;
};

Table<SpaceId, Profile> profiles_of(const Problem& problem, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  Table<SpaceId, Profile> profiles(problem.space_count());
  std::vector<std::pair<TensorId, std::size_t>> pairs;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    pairs.emplace_back(schedule.transfers[i].tensor, i);
  }
  const auto moved = Rows<TensorId, std::size_t>::from_pairs(problem.tensor_count(), pairs);
  const auto last_reader = [&](TensorId tensor, DeviceId device, double end) {
    for (const OpId reader : problem.consumers(tensor)) {
      if (problem.same_space(plan.placement[reader], device)) {
        end = std::max(end, schedule.end[reader]);
      }
    }
    return end;
  };
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    const DeviceId home = plan.placement[producer];
    const double bytes = problem.tensor(tensor).bytes;
    double end = last_reader(tensor, home, schedule.end[producer]);
    for (const std::size_t i : moved[tensor]) {
      const Transfer& transfer = schedule.transfers[i];
      if (transfer.from == home) end = std::max(end, transfer.end);
      if (!transfer.to.valid() || problem.on_host(transfer.to)) continue;
      profiles[problem.space(transfer.to)].hold(
          transfer.start, last_reader(tensor, transfer.to, transfer.end), bytes);
    }
    if (!problem.on_host(home)) {
      profiles[problem.space(home)].hold(schedule.start[producer], end, bytes);
    }
  }
  return profiles;
}

}  // namespace

std::vector<Transfer> movements_of(const Problem& problem, const Plan& plan) {
  if (plan.schedule) return plan.schedule->transfers;
  if (problem.objective() == Objective::call_latency) return movements_of_calls(problem, plan);
  return movements_of_pipeline(problem, plan);
}

Table<DeviceId, DeviceWork> device_work(const Problem& problem, const Plan& plan) {
  Table<DeviceId, DeviceWork> work(problem.device_count());
  if (problem.objective() == Objective::throughput) {
    add_pipeline(problem, plan, work);
    return work;
  }
  for (const OpId op : problem.ops()) {
    DeviceWork& device = work[plan.placement[op]];
    const double time = plan.schedule ? plan.schedule->end[op] - plan.schedule->start[op]
                                      : problem.time(op, plan.placement[op]);
    ++device.ops;
    device.compute += time;
    if (plan.schedule || problem.on_host(plan.placement[op])) device.busy += time;
  }
  for (const Call& call : plan.calls) work[call.device].busy += call.end - call.start;
  add_movements(movements_of(problem, plan), work);
  return work;
}

Table<DeviceId, DeviceMemory> device_memory(const Problem& problem, const Plan& plan,
                                            std::size_t most_steps) {
  Table<DeviceId, DeviceMemory> memory(problem.device_count());
  const Simulation simulation = simulate(problem, plan);
  for (const DeviceId device : problem.devices()) {
    memory[device].resident = simulation.devices[device].resident;
    memory[device].peak = simulation.devices[device].peak;
  }
  if (!plan.schedule) return memory;
  const auto profiles = profiles_of(problem, plan);
  for (const DeviceId device : problem.devices()) {
    memory[device].steps =
        profiles[problem.space(device)].steps(memory[device].resident, most_steps);
  }
  return memory;
}

}  // namespace placewright
