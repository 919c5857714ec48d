#include <algorithm>
#include <map>

#include "planners/methods/cpsat_model_state.h"
#include "planners/methods/device_symmetries.h"

namespace placewright {
namespace {

using solvers::CpLiteral;
using solvers::CpVariable;

// Of larger problems few are proved, and finding symmetries takes long.
constexpr std::size_t kMostDevices = 16;
constexpr std::size_t kMostOps = 64;
// Some tenths of a second for what ops are forced onto; counted, so that a limit of steps means the
// same on every machine.
constexpr int kMostAsked = 2000;

// Whether the exchange is of these two devices alone.
bool only_two(const DeviceExchange& exchange, DeviceId a, DeviceId b) {
  return std::ranges::all_of(exchange.keys(), [&](DeviceId device) {
    const DeviceId expected = device == a ? b : device == b ? a : device;
    return exchange[device] == expected;
  });
}

// Devices of which any two may be exchanged and the rest stays.
std::vector<std::vector<DeviceId>> exchangeable(const Problem& problem) {
  std::vector<std::vector<DeviceId>> sets;
  const std::vector<DeviceExchange> symmetries = device_symmetries(problem);
  Table<DeviceId, char> taken(problem.device_count(), 0);
  for (const DeviceId first : problem.devices()) {
    if (taken[first]) continue;
    std::vector<DeviceId> set{first};
    for (const DeviceExchange& symmetry : symmetries) {
      const DeviceId other = symmetry[first];
      if (other == first || taken[other] || !only_two(symmetry, first, other)) continue;
      if (std::ranges::find(set, other) != set.end()) continue;
      set.push_back(other);
      taken[other] = 1;
    }
    std::ranges::sort(set);
    if (set.size() > 1) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace

bool ScheduleModel::State::is_whole() const {
  return order_.size() == problem_.op_count() && scope_.given.empty() && scope_.busy.empty() &&
         scope_.after.empty() && scope_.sequences.empty();
}

// Ops that a schedule as good as the one known must have on the same device.
void ScheduleModel::State::add_company(double at_most) {
  if (!latency_ || !is_whole() || at_most == kInfinity) return;
  int asked = 0;
  facts_ = company_facts(problem_, at_most, [&] { return ++asked > kMostAsked; });
  if (!facts_) return;
  std::map<std::size_t, OpId> first;
  for (const OpId op : order_) {
    const auto [found, fresh] = first.try_emplace(facts_->around.together[op.index()], op);
    if (fresh || problem_.group(found->second) == problem_.group(op)) continue;
    for (const DeviceId device : problem_.devices()) {
      add_clause({!on(op, device), on(found->second, device)});
      add_clause({on(op, device), !on(found->second, device)});
    }
  }
}

// Of devices that differ in name only, each is used by an op no later in the order than the first
// op on the next one: one of the many names of every solution is left.
void ScheduleModel::State::add_symmetries() {
  if (!is_whole() || problem_.device_count() > kMostDevices || problem_.op_count() > kMostOps)
    return;
  alike_ = exchangeable(problem_);
  std::vector<GroupId> groups;
  for (const OpId op : order_) {
    const GroupId group = problem_.group(op);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  for (const std::vector<DeviceId>& devices : alike_) {
    for (std::size_t i = 0; i + 1 < devices.size(); ++i) {
      // Whether one of the groups so far is on the device.
      CpLiteral used = !yes_;
      for (const GroupId group : groups) {
        const OpId op = problem_.group_ops(group).front();
        add_clause({!on(op, devices[i + 1]), used});
        used = any({used, on(op, devices[i])});
      }
    }
  }
}

// What each device is called in the solution that is left.
Table<DeviceId, DeviceId> ScheduleModel::State::renamed(const Placement& placement) const {
  Table<DeviceId, DeviceId> names(problem_.device_count());
  for (const DeviceId device : problem_.devices()) names[device] = device;
  for (const std::vector<DeviceId>& devices : alike_) {
    std::vector<DeviceId> in_use;
    for (const OpId op : order_) {
      const DeviceId device = placement[op];
      if (std::ranges::find(devices, device) == devices.end()) continue;
      if (std::ranges::find(in_use, device) == in_use.end()) in_use.push_back(device);
    }
    for (const DeviceId device : devices) {
      if (std::ranges::find(in_use, device) == in_use.end()) in_use.push_back(device);
    }
    for (std::size_t i = 0; i < devices.size(); ++i) names[in_use[i]] = devices[i];
  }
  return names;
}

}  // namespace placewright
