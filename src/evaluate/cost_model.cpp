#include "evaluate/cost_model.h"

#include <algorithm>

#include "evaluate/memory.h"
#include "evaluate/placement_plan.h"
#include "evaluate/rules/durations.h"

namespace placewright {

const CostModel& cost_model(const Problem& problem) {
  switch (record_of(problem.objective()).form) {
    case PlanForm::stages:
      return pipeline_costs();
    case PlanForm::calls:
      return call_costs();
    case PlanForm::schedule:
      break;
  }
  return schedule_costs();
}

Table<TensorId, double> CostModel::overheads(const Problem& problem, const Plan& plan) const {
  Table<TensorId, double> time(problem.tensor_count(), 0);
  std::vector<DeviceId> devices;
  std::vector<SpaceId> spaces;
  const auto make_unique = [](auto& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  };
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId from = plan.placement[problem.producer(tensor)];
    devices.clear();
    spaces.clear();
    bool handed_over = false;
    for (const OpId reader : problem.consumers(tensor)) {
      const DeviceId to = plan.placement[reader];
      if (to == from) continue;
      devices.push_back(to);
      if (problem.same_space(from, to)) {
        handed_over = true;
      } else {
        spaces.push_back(problem.space(to));
      }
    }
    make_unique(devices);
    make_unique(spaces);
    time[tensor] = static_cast<double>(sends_borne(problem, from, spaces.size(), handed_over)) *
                   problem.send_overhead(tensor, from);
    for (const DeviceId to : devices) {
      if (bears_receive(problem, from, to)) time[tensor] += problem.receive_overhead(tensor, to);
    }
  }
  return time;
}

double idle_time(double whole, double busy) {
  return whole - busy > 1e-9 * whole ? whole - busy : 0;
}

bool in_host_memory(const Problem& problem, DeviceId device) {
  return problem.interconnect() == InterconnectKind::host && problem.on_host(device);
}

void Simulation::add(const Transfer& transfer) {
  const double length = transfer.end - transfer.start;
  if (transfer.from.valid()) devices[transfer.from].sending += length;
  if (transfer.to.valid()) devices[transfer.to].receiving += length;
}

Simulation simulate(const Problem& problem, const Plan& plan) {
  Simulation simulation;
  simulation.devices = Table<DeviceId, DeviceSummary>(problem.device_count());
  const MemoryLedger memory(problem, plan.placement);
  for (const DeviceId device : problem.devices()) {
    simulation.devices[device].resident = memory.used(device);
    simulation.devices[device].peak = memory.used(device);
  }
  for (const OpId op : problem.ops()) ++simulation.devices[plan.placement[op]].ops;
  cost_model(problem).simulate(problem, plan, simulation);
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

std::optional<Plan> plan_of_placement(const Problem& problem, const Placement& placement) {
  return cost_model(problem).plan_of(problem, placement);
}

}  // namespace placewright
