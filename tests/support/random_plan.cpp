#include "support/random_plan.h"

#include <vector>

namespace placewright::testing {

Placement random_placement(const Problem& problem, RandomSource& random) {
  Placement placement(problem.op_count());
  for (const GroupId group : problem.groups()) {
    std::vector<DeviceId> allowed;
    for (const DeviceId device : problem.devices()) {
      if (problem.group_allowed(group, device)) allowed.push_back(device);
    }
    if (allowed.empty()) continue;
    const DeviceId chosen = allowed[random.below(allowed.size())];
    for (const OpId op : problem.group_ops(group)) placement[op] = chosen;
  }
  return placement;
}

Table<OpId, double> random_priority(const Problem& problem, RandomSource& random) {
  Table<OpId, double> priority(problem.op_count());
  for (double& value : priority) value = random.unit();
  return priority;
}

}  // namespace placewright::testing
