#include "verify/movements.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "verify/findings.h"

namespace placewright::verifying {
namespace {

// On each device other than the producer's the reader of smallest rank; those of a space together.
std::vector<OpId> first_readers(const Problem& problem, const Placement& placement,
                                TensorId tensor) {
  const DeviceId home = placement[problem.producer(tensor)];
  std::vector<OpId> readers;
  for (const OpId consumer : problem.consumers(tensor)) {
    if (placement[consumer] != home) readers.push_back(consumer);
  }
  const auto key = [&](OpId op) {
    const DeviceId device = placement[op];
    return std::make_tuple(problem.space(device), device, problem.topological_rank(op));
  };
  std::ranges::sort(readers, {}, key);
  const auto others = std::ranges::unique(readers, {}, [&](OpId op) { return placement[op]; });
  readers.erase(others.begin(), others.end());
  return readers;
}

// One to each space but the producer's, of readers as first_readers gives them.
std::vector<Movement> movements_of(const Problem& problem, const Placement& placement,
                                   TensorId tensor, std::span<const OpId> readers) {
  const bool through_host = problem.interconnect() == InterconnectKind::host;
  const DeviceId home = placement[problem.producer(tensor)];
  const auto space = [&](OpId op) { return problem.space(placement[op]); };
  const auto rank = [&](OpId op) { return problem.topological_rank(op); };
  const auto leaves = [&](OpId op) { return space(op) != problem.space(home); };
  std::vector<Movement> movements;
  if (through_host && !problem.on_host(home) && std::ranges::any_of(readers, leaves)) {
    movements.push_back({tensor, Leg::out, home, DeviceId{}, problem.host_time(tensor)});
  }
  for (auto first = readers.begin(); first != readers.end();) {
    const SpaceId to_space = space(*first);
    const auto next =
        std::find_if(first, readers.end(), [&](OpId reader) { return space(reader) != to_space; });
    const DeviceId to = placement[*std::ranges::min_element(first, next, {}, rank)];
    if (leaves(*first) && !shares_host_memory(problem, to)) {
      movements.push_back(
          through_host
              ? Movement{tensor, Leg::in, DeviceId{}, to, problem.host_time(tensor)}
              : Movement{tensor, Leg::direct, home, to, problem.link_time(tensor, home, to)});
    }
    first = next;
  }
  return movements;
}

}  // namespace

bool shares_host_memory(const Problem& problem, DeviceId device) {
  return problem.interconnect() == InterconnectKind::host && problem.on_host(device);
}

Traffic traffic_of(const Problem& problem, const Placement& placement) {
  Traffic traffic;
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId home = placement[problem.producer(tensor)];
    const auto leaves = [&](OpId op) { return !problem.same_space(home, placement[op]); };
    std::vector<OpId> readers = first_readers(problem, placement, tensor);
    traffic.movements.append(movements_of(problem, placement, tensor, readers));
    traffic.handed_over.push_back(std::ranges::all_of(readers, leaves) ? 0 : 1);
    std::erase_if(readers, [&](OpId reader) {
      return leaves(reader) && shares_host_memory(problem, placement[reader]);
    });
    traffic.receivers.append(readers);
  }
  return traffic;
}

double send_overheads(const Problem& problem, const Placement& placement, const Traffic& traffic,
                      TensorId tensor) {
  const auto movements = traffic.movements[tensor];
  const auto leaving =
      std::ranges::count_if(movements, [](const Movement& m) { return m.from.valid(); });
  const auto times = static_cast<double>(leaving + traffic.handed_over[tensor]);
  return times * problem.send_overhead(tensor, placement[problem.producer(tensor)]);
}

std::string called(const Problem& problem, const Movement& movement) {
  std::string tensor = called(problem, movement.tensor);
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
