#include "planners/methods/device_choice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "planners/methods/packing.h"

namespace placewright {

DeviceChoice::DeviceChoice(const Problem& problem, Mode mode)
    : problem_(&problem),
      mode_(mode),
      ledger_(problem),
      devices_(problem.devices().begin(), problem.devices().end()),
      bound_(problem.group_count()) {}

DeviceChoice DeviceChoice::within_memory(const Problem& problem) {
  return {problem, Mode::within_memory};
}

DeviceChoice DeviceChoice::within_memory(const Problem& problem, std::vector<DeviceId> devices) {
  DeviceChoice choice(problem, Mode::within_memory);
  choice.devices_ = std::move(devices);
  return choice;
}

DeviceChoice DeviceChoice::ignoring_memory(const Problem& problem) {
  return {problem, Mode::ignoring_memory};
}

DeviceChoice DeviceChoice::held_to(const Problem& problem, const Placement& placement) {
  DeviceChoice choice(problem, Mode::held);
  for (const OpId op : problem.ops()) choice.bound_[problem.group(op)] = placement[op];
  return choice;
}

std::span<const DeviceId> DeviceChoice::candidates(OpId op) {
  candidates_.clear();
  const GroupId group = problem_->group(op);
  if (bound_[group].valid()) {
    candidates_.push_back(bound_[group]);
    return candidates_;
  }
  const auto members = problem_->group_ops(group);
  for (const DeviceId device : devices_) {
    const auto allowed = [&](OpId member) { return problem_->allowed(member, device); };
    if (!std::ranges::all_of(members, allowed)) continue;
    if (mode_ == Mode::within_memory && !ledger_.fits_group(group, device)) continue;
    candidates_.push_back(device);
  }
  return candidates_;
}

void DeviceChoice::take(OpId op, DeviceId device) {
  const GroupId group = problem_->group(op);
  if (bound_[group].valid()) return;
  bound_[group] = device;
  if (mode_ == Mode::within_memory) ledger_.add_group(group, device);
}

std::vector<DeviceId> busiest_devices(const Problem& problem, const Placement& placement,
                                      std::size_t count) {
  Table<DeviceId, double> work(problem.device_count(), 0);
  for (const OpId op : problem.ops()) work[placement[op]] += problem.time(op, placement[op]);
  std::vector<DeviceId> devices(problem.devices().begin(), problem.devices().end());
  std::ranges::stable_sort(devices, std::greater{}, [&](DeviceId device) { return work[device]; });
  devices.resize(std::min(count, devices.size()));
  std::ranges::sort(devices);
  return devices;
}

Answer construct(const Problem& problem, Control& control, const Construction& construction) {
  Answer answer;
  DeviceChoice limited = DeviceChoice::within_memory(problem);
  answer.plan = construction(limited);
  if (answer.plan) return answer;
  const auto out_of_time = [&] {
    if (control.should_stop()) {
      answer.reason = fmt::format("no plan before the {}", control.stop_reason());
    }
    return control.should_stop();
  };
  if (out_of_time()) return answer;
  DeviceChoice unlimited = DeviceChoice::ignoring_memory(problem);
  const std::optional<Plan> wish = construction(unlimited);
  const PackingCosts costs =
      wish ? cost_of_leaving(problem, wish->placement) : PackingCosts(problem);
  Packing packing = pack(problem, costs, control);
  if (!packing.placement) {
    answer.proved_infeasible = packing.proved_infeasible;
    answer.reason = std::move(packing.reason);
    return answer;
  }
  DeviceChoice held = DeviceChoice::held_to(problem, *packing.placement);
  answer.plan = construction(held);
  if (!answer.plan && !out_of_time()) {
    answer.reason = "the only placements found break a rule of the objective";
  }
  return answer;
}

}  // namespace placewright
