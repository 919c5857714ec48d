#include "verify/movements.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "verify/findings.h"

namespace placewright::verifying {
namespace {

// The readers of a tensor away from its producer's device: by device, the first in rank in front.
std::vector<OpId> readers_elsewhere(const Problem& problem, const Placement& placement,
                                    TensorId tensor) {
  const DeviceId home = placement[problem.producer(tensor)];
  std::vector<OpId> readers;
  for (const OpId consumer : problem.consumers(tensor)) {
    if (placement[consumer] != home) readers.push_back(consumer);
  }
  std::sort(readers.begin(), readers.end(), [&](OpId left, OpId right) {
    return std::make_tuple(placement[left], problem.topological_rank(left)) <
           std::make_tuple(placement[right], problem.topological_rank(right));
  });
  return readers;
}

}  // namespace

bool shares_host_memory(const Problem& problem, DeviceId device) {
  return problem.interconnect() == InterconnectKind::host && problem.on_host(device);
}

Rows<TensorId, Movement> needed_movements(const Problem& problem, const Placement& placement) {
  const bool through_host = problem.interconnect() == InterconnectKind::host;
  Rows<TensorId, Movement> movements;
  std::vector<Movement> row;
  for (const TensorId tensor : problem.tensors()) {
    row.clear();
    const DeviceId home = placement[problem.producer(tensor)];
    const std::vector<OpId> readers = readers_elsewhere(problem, placement, tensor);
    if (through_host && !readers.empty() && !problem.on_host(home)) {
      row.push_back({tensor, Leg::out, home, DeviceId{}, problem.host_time(tensor), OpId{}});
    }
    DeviceId served;
    for (const OpId reader : readers) {
      const DeviceId to = placement[reader];
      if (to == served || shares_host_memory(problem, to)) continue;
      served = to;
      row.push_back(through_host ? Movement{tensor, Leg::in, DeviceId{}, to,
                                            problem.host_time(tensor), reader}
                                 : Movement{tensor, Leg::direct, home, to,
                                            problem.link_time(tensor, home, to), reader});
    }
    movements.append(row);
  }
  return movements;
}

std::string called(const Problem& problem, const Movement& movement) {
  const std::string tensor = called(problem, movement.tensor);
  switch (movement.leg) {
    case Leg::direct:
      return fmt::format("{} from {} to {}", tensor, called(problem, movement.from),
                         called(problem, movement.to));
    case Leg::out:
      return fmt::format("{} out of {}", tensor, called(problem, movement.from));
    case Leg::in:
      return fmt::format("{} into {}", tensor, called(problem, movement.to));
  }
  return tensor;
}

std::vector<DeviceId> endpoints(const Movement& movement) {
  std::vector<DeviceId> devices;
  if (movement.from.valid()) devices.push_back(movement.from);
  if (movement.to.valid()) devices.push_back(movement.to);
  return devices;
}

}  // namespace placewright::verifying
