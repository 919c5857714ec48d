#include "report/device_memory.h"

#include <algorithm>
#include <map>

#include "evaluate/simulate.h"

namespace placewright {
namespace {

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
