#include "evaluate/rules/durations.h"

#include <utility>

namespace placewright {

Table<OpId, double> op_durations(const Problem& problem, const Placement& placement) {
  Table<OpId, double> durations(problem.op_count());
  for (const OpId op : problem.ops()) durations[op] = problem.time(op, placement[op]);
  if (!problem.has_overheads()) return durations;

  Table<DeviceId, OpId> first_reader(problem.device_count());
  Table<SpaceId, TensorId> reached(problem.space_count());  // by a transfer of this tensor
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    const DeviceId from = placement[producer];
    std::size_t destinations = 0;
    bool handed_over = false;
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      if (to == from) continue;
      if (problem.same_space(from, to)) {
        handed_over = true;
      } else if (std::exchange(reached[problem.space(to)], tensor) != tensor) {
        ++destinations;
      }
      OpId& first = first_reader[to];
      if (!first.valid() || problem.topological_rank(consumer) < problem.topological_rank(first)) {
        first = consumer;
      }
    }
    if (destinations == 0 && !handed_over) continue;
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      const OpId first = std::exchange(first_reader[to], OpId{});
      if (!first.valid() || !bears_receive(problem, from, to)) continue;
      durations[first] += problem.receive_overhead(tensor, to);
    }
    const std::size_t sends = sends_borne(problem, from, destinations, handed_over);
    durations[producer] += static_cast<double>(sends) * problem.send_overhead(tensor, from);
  }
  return durations;
}

}  // namespace placewright
