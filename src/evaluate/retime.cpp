#include <algorithm>
#include <queue>
#include <tuple>

#include "evaluate/activities.h"
#include "evaluate/resource_profile.h"
#include "evaluate/schedule.h"

namespace placewright {
namespace {

// When `shape` starts each activity; a transfer it lacks follows its producer.
Table<ActivityId, double> proposed_starts(const Problem& problem, const ActivityNetwork& network,
                                          const Schedule& shape) {
  const auto key = [&](const Transfer& transfer) {
    const SpaceId to = transfer.to.valid() ? problem.space(transfer.to) : SpaceId{};
    return std::tuple{transfer.tensor, transfer.leg, to};
  };
  std::vector<const Transfer*> known;
  known.reserve(shape.transfers.size());
  for (const Transfer& transfer : shape.transfers) known.push_back(&transfer);
  std::sort(known.begin(), known.end(),
            [&](const Transfer* a, const Transfer* b) { return key(*a) < key(*b); });

  Table<ActivityId, double> start(network.size());
  for (const OpId op : problem.ops()) start[network.of(op)] = shape.start[op];
  for (std::size_t i = 0; i < network.transfers.size(); ++i) {
    const Transfer& transfer = network.transfers[i];
    const auto found = std::lower_bound(
        known.begin(), known.end(), key(transfer),
        [&](const Transfer* candidate, const auto& wanted) { return key(*candidate) < wanted; });
    const bool listed = found != known.end() && key(**found) == key(transfer);
    start[ActivityId{network.op_count + i}] =
        listed ? (*found)->start : shape.end[problem.producer(transfer.tensor)];
  }
  return start;
}

}  // namespace

Schedule retime(const Problem& problem, const Placement& placement, const Schedule& shape) {
  const ActivityNetwork network(problem, placement);
  const Table<ActivityId, double> proposed = proposed_starts(problem, network, shape);
  const auto later = [&](ActivityId a, ActivityId b) {
    return proposed[a] != proposed[b] ? proposed[a] > proposed[b] : a > b;
  };
  std::priority_queue<ActivityId, std::vector<ActivityId>, decltype(later)> ready(later);
  Table<ActivityId, std::uint32_t> missing = network.predecessor_count;
  Table<ActivityId, double> earliest(network.size(), 0);
  for (const ActivityId id : missing.keys()) {
    if (network.is_op(id)) earliest[id] = released(problem, network.op(id));
    if (missing[id] == 0) ready.push(id);
  }

  Schedule schedule;
  schedule.start.assign(problem.op_count(), 0);
  schedule.end.assign(problem.op_count(), 0);
  schedule.transfers.reserve(network.transfers.size());
  LaneTimes lanes(problem);
  ResourceProfiles resources(problem);
  PortTimes ports(problem);
  while (!ready.empty()) {
    const ActivityId id = ready.top();
    ready.pop();
    const double duration = network.duration[id];
    double end = 0;
    if (network.is_op(id)) {
      const OpId op = network.op(id);
      schedule.start[op] = start_op(op, placement[op], earliest[id], duration, lanes, resources);
      end = schedule.end[op] = schedule.start[op] + duration;
    } else {
      Transfer transfer = network.transfer(id);
      transfer.start = ports.start(problem, transfer, earliest[id], duration);
      end = transfer.end = transfer.start + duration;
      schedule.transfers.push_back(transfer);
    }
    for (const ActivityId successor : network.successors[id]) {
      earliest[successor] = std::max(earliest[successor], end);
      if (--missing[successor] == 0) ready.push(successor);
    }
  }
  return schedule;
}

}  // namespace placewright
