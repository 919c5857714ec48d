// When an op starts (docs/semantics.md, "schedules"): not before its model's arrival, nor before
// its inputs are in its space, and then as soon as a lane of its device and its resources are free.
//
// A timer gives these functions what it knows: where ops are and when they end, lanes, levels.

#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "problem/lanes.h"
#include "problem/problem.h"

namespace placewright {

inline double released(const Problem& problem, OpId op) {
  return problem.model(problem.op(op).model).arrival;
}

// When all inputs are in the space of the op's device, `release` at the earliest. `fetch(tensor,
// from, to)` answers when an input from another space is there.
template <class End, class Fetch>
double inputs_there(const Problem& problem, OpId op, const Placement& placement, double release,
                    const End& end, const Fetch& fetch) {
  const DeviceId device = placement[op];
  double ready = release;
  for (const TensorId input : problem.inputs(op)) {
    const OpId producer = problem.producer(input);
    const DeviceId from = placement[producer];
    const bool here = problem.same_space(from, device);
    ready = std::max(ready, here ? end(producer) : fetch(input, from, device));
  }
  return ready;
}

// Takes the lane that is free first until `end`; the lanes of a device are kept in ascending order.
inline void take_first_lane(double* first, const double* last, double end) {
  *first = end;
  for (double* lane = first; lane + 1 < last && lane[0] > lane[1]; ++lane) {
    std::swap(lane[0], lane[1]);
  }
}

// When each lane of each device is free, where ops run one behind the other on a lane.
class LaneTimes {
 public:
  static constexpr bool kGaps = false;

  explicit LaneTimes(const Problem& problem) {
    begin_.reserve(problem.device_count() + 1);
    begin_.push_back(0);
    for (const DeviceId device : problem.devices()) {
      begin_.push_back(begin_.back() + static_cast<std::uint32_t>(useful_lanes(problem, device)));
    }
    clear();
  }

  void clear() { free_.assign(begin_.back(), 0); }
  // Of the same problem.
  void copy_times(const LaneTimes& other) { free_.assign(other.free_.begin(), other.free_.end()); }

  // Ascending.
  [[nodiscard]] std::span<double> of(DeviceId device) {
    return {free_.data() + begin_[device.index()], free_.data() + begin_[device.index() + 1]};
  }
  [[nodiscard]] std::span<const double> of(DeviceId device) const {
    return {free_.data() + begin_[device.index()], free_.data() + begin_[device.index() + 1]};
  }
  [[nodiscard]] double first_free(DeviceId device) const { return free_[begin_[device.index()]]; }

  [[nodiscard]] double earliest(DeviceId device, double ready, double /*length*/) const {
    return std::max(ready, first_free(device));
  }
  void take(DeviceId device, double start, double length) {
    take_first_lane(free_.data() + begin_[device.index()],
                    free_.data() + begin_[device.index() + 1], start + length);
  }

 private:
  std::vector<std::uint32_t> begin_;  // by device, and the end
  std::vector<double> free_;
};

// Where a lane is free and the device's resources are; an op of zero duration occupies nothing.
template <class Lanes, class Levels>
double earliest_op_start(OpId op, DeviceId device, double ready, double length, Lanes& lanes,
                         const Levels& levels) {
  if (length == 0) return ready;
  double start = lanes.earliest(device, ready, length);
  if (!levels.any()) return start;
  if constexpr (!Lanes::kGaps) return levels.earliest(op, device, start, length);
  // Gaps and resources are asked in turn until they agree.
  for (double before = -1; start != before;) {
    before = start;
    start = lanes.earliest(device, levels.earliest(op, device, start, length), length);
  }
  return start;
}

// The same, and the op has the lane and its resources from then on.
template <class Lanes, class Levels>
double start_op(OpId op, DeviceId device, double ready, double length, Lanes& lanes,
                Levels& levels) {
  if (length == 0) return ready;
  const double start = earliest_op_start(op, device, ready, length, lanes, levels);
  if (levels.any()) levels.hold(op, device, start, length);
  lanes.take(device, start, length);
  return start;
}

}  // namespace placewright
