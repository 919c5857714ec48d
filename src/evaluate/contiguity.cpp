#include "evaluate/contiguity.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "evaluate/device_graph.h"

namespace placewright {

bool jointly_contiguous(const Problem& problem, const Placement& placement) {
  const Rows<DeviceId, DeviceId> successors = device_graph(problem, placement);
  Table<DeviceId, std::size_t> waiting(problem.device_count(), 0);
  for (const DeviceId device : problem.devices()) {
    for (const DeviceId successor : successors[device]) ++waiting[successor];
  }
  std::vector<DeviceId> order;
  for (const DeviceId device : problem.devices()) {
    if (waiting[device] == 0) order.push_back(device);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const DeviceId successor : successors[order[i]]) {
      if (--waiting[successor] == 0) order.push_back(successor);
    }
  }
  return order.size() == problem.device_count();
}

bool per_device_contiguous(const Problem& problem, const Placement& placement) {
  std::vector<std::pair<OpId, OpId>> edges = forward_edges(problem);
  // Along the order of ops one round is enough, unless turned edges lead against it.
  std::ranges::sort(edges, {},
                    [&](const auto& edge) { return problem.topological_rank(edge.first); });

  // Bit d of a node: some path that ends in it was on device d and has left it.
  const std::size_t words = (problem.device_count() + 63) / 64;
  std::vector<std::uint64_t> left(problem.op_count() * words, 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [from, to] : edges) {
      const DeviceId device = placement[from];
      const bool leaves = device != placement[to];
      for (std::size_t i = 0; i < words; ++i) {
        std::uint64_t bits = left[from.index() * words + i];
        if (leaves && i == device.index() / 64) bits |= std::uint64_t{1} << (device.index() % 64);
        std::uint64_t& target = left[to.index() * words + i];
        changed = changed || (bits & ~target) != 0;
        target |= bits;
      }
      const std::size_t home = placement[to].index();
      if ((left[to.index() * words + home / 64] >> (home % 64) & 1U) != 0) return false;
    }
  }
  return true;
}

bool contiguous(const Problem& problem, const Placement& placement) {
  switch (problem.rules().contiguity) {
    case Contiguity::none:
      return true;
    case Contiguity::joint:
      return jointly_contiguous(problem, placement);
    case Contiguity::per_device:
      return per_device_contiguous(problem, placement);
  }
  return false;
}

}  // namespace placewright
