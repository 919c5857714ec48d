#include "evaluate/resource_load.h"

#include <algorithm>

namespace placewright {

std::vector<ResourceUse> held_by(const Problem& problem, std::span<const DeviceId> devices,
                                 std::span<const OpId> ops) {
  double share = 0;
  for (const OpId op : ops) share = std::max(share, problem.share(op, devices.front()));
  std::vector<ResourceUse> held;
  for (const DeviceId device : devices) {
    for (const ResourceUse& use : problem.uses(device)) {
      auto known = std::ranges::find(held, use.resource, &ResourceUse::resource);
      if (known == held.end()) known = held.insert(known, {use.resource, 0});
      known->amount += share * use.amount;
    }
  }
  return held;
}

Table<ResourceId, double> resource_loads(const Problem& problem, const Plan& plan) {
  Table<ResourceId, double> loads(problem.resource_count(), 0);
  const auto add = [&](std::span<const DeviceId> devices, std::span<const OpId> ops, double time) {
    for (const ResourceUse& use : held_by(problem, devices, ops)) {
      loads[use.resource] += time * use.amount / problem.resource(use.resource).capacity;
    }
  };
  if (plan.schedule) {
    for (const OpId op : problem.ops()) {
      add({&plan.placement[op], 1}, {&op, 1}, plan.schedule->end[op] - plan.schedule->start[op]);
    }
  }
  for (const Stage& stage : plan.stages) add(stage.devices, stage.ops, stage.load);
  for (const Call& call : plan.calls) add({&call.device, 1}, call.ops, call.end - call.start);
  return loads;
}

}  // namespace placewright
