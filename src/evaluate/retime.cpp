#include <algorithm>
#include <queue>
#include <tuple>

#include "evaluate/activities.h"
#include "evaluate/resource_profile.h"
#include "evaluate/schedule.h"
#include "problem/lanes.h"

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

// Gives each activity, in the order it is offered, the earliest start that its resources allow.
class SerialTimer {
 public:
  explicit SerialTimer(const Problem& problem)
      : problem_(problem),
        lanes_(problem.device_count()),
        resources_(problem),
        out_free_(problem.space_count(), 0),
        in_free_(problem.space_count(), 0) {
    for (const DeviceId device : problem.devices()) {
      lanes_[device].assign(static_cast<std::size_t>(useful_lanes(problem, device)), 0);
    }
  }

  double start_op(OpId op, DeviceId device, double ready, double duration) {
    if (duration == 0) return ready;
    auto& lanes = lanes_[device];
    double& free = *std::min_element(lanes.begin(), lanes.end());
    double start = std::max(ready, free);
    if (resources_.any()) {
      start = resources_.earliest(op, device, start, duration);
      resources_.hold(op, device, start, duration);
    }
    free = start + duration;
    return start;
  }

  double start_transfer(const Transfer& transfer, double ready, double duration) {
    if (duration == 0 || !problem_.rules().congestion) return ready;
    double* out = transfer.leg != Leg::in ? &out_free_[problem_.space(transfer.from)] : nullptr;
    double* in = transfer.leg != Leg::out ? &in_free_[problem_.space(transfer.to)] : nullptr;
    double start = ready;
    if (out != nullptr) start = std::max(start, *out);
    if (in != nullptr) start = std::max(start, *in);
    if (out != nullptr) *out = start + duration;
    if (in != nullptr) *in = start + duration;
    return start;
  }

 private:
  const Problem& problem_;
  Table<DeviceId, std::vector<double>> lanes_;
  ResourceProfiles resources_;
  Table<SpaceId, double> out_free_;
  Table<SpaceId, double> in_free_;
};

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
    if (network.is_op(id)) earliest[id] = problem.model(problem.op(network.op(id)).model).arrival;
    if (missing[id] == 0) ready.push(id);
  }

  Schedule schedule;
  schedule.start.assign(problem.op_count(), 0);
  schedule.end.assign(problem.op_count(), 0);
  schedule.transfers.reserve(network.transfers.size());
  SerialTimer timer(problem);
  while (!ready.empty()) {
    const ActivityId id = ready.top();
    ready.pop();
    const double duration = network.duration[id];
    double end = 0;
    if (network.is_op(id)) {
      const OpId op = network.op(id);
      schedule.start[op] = timer.start_op(op, placement[op], earliest[id], duration);
      end = schedule.end[op] = schedule.start[op] + duration;
    } else {
      Transfer transfer = network.transfer(id);
      transfer.start = timer.start_transfer(transfer, earliest[id], duration);
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
