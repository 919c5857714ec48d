#include "evaluate/contiguity.h"

#include <cstdint>
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
  // Bit d of an op: some path of forward ops that ends in it was on device d and has left it.
  const std::size_t words = (problem.device_count() + 63) / 64;
  std::vector<std::uint64_t> left(problem.op_count() * words, 0);
  const auto word = [&](OpId op, DeviceId device) -> std::uint64_t& {
    return left[op.index() * words + device.index() / 64];
  };
  const auto bit = [](DeviceId device) { return std::uint64_t{1} << (device.index() % 64); };
  for (const OpId op : problem.topological_order()) {
    if (problem.op(op).backward) continue;
    for (const OpId predecessor : problem.predecessors(op)) {
      if (problem.op(predecessor).backward) continue;
      for (std::size_t i = 0; i < words; ++i) {
        left[op.index() * words + i] |= left[predecessor.index() * words + i];
      }
      const DeviceId from = placement[predecessor];
      if (from != placement[op]) word(op, from) |= bit(from);
    }
    if ((word(op, placement[op]) & bit(placement[op])) != 0) return false;
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
