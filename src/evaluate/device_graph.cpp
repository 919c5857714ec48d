#include "evaluate/device_graph.h"

#include <utility>
#include <vector>

namespace placewright {

Rows<DeviceId, DeviceId> device_graph(const Problem& problem, const Placement& placement) {
  std::vector<std::pair<DeviceId, DeviceId>> edges;
  for (const OpId op : problem.ops()) {
    if (problem.op(op).backward) continue;
    for (const OpId successor : problem.successors(op)) {
      if (problem.op(successor).backward || placement[op] == placement[successor]) continue;
      edges.emplace_back(placement[op], placement[successor]);
    }
  }
  return Rows<DeviceId, DeviceId>::from_pairs(problem.device_count(), edges);
}

}  // namespace placewright
