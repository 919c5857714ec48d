// A schedule under construction: ops are placed one at a time, in topological order.
//
// The constructive planners (HEFT, ETF and their kin) ask `probe` where an op would run on each device and
// `place` it on one. Inputs from elsewhere are sent in the earliest gap of both ports. Cut overheads depend
// on placements still to come, so they are left to `retime` (schedule.h), which `finish` calls; it never
// makes an activity later where there are none.

#pragma once

#include <vector>

#include "evaluate/timeline.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

enum class Gaps {
  insert,  // an op may run in a gap between two ops placed before
  append,  // an op runs after all that are on its device
};

class PartialSchedule {
 public:
  struct Slot {
    double start = kInfinity;
    double end = kInfinity;
  };

  PartialSchedule(const Problem& problem, Gaps gaps);

  // No slot on this device can start earlier; costs a few look-ups, no search for gaps.
  [[nodiscard]] double start_bound(OpId op, DeviceId device) const;

  // Where the op would run; infinite where an input cannot reach the device.
  [[nodiscard]] Slot probe(OpId op, DeviceId device);

  // The device among `candidates` on which the op ends first (ties: the one named first).
  template <class Candidates>
  [[nodiscard]] DeviceId earliest_end(OpId op, const Candidates& candidates) {
    DeviceId best;
    double best_end = kInfinity;
    for (const DeviceId device : candidates) {
      if (start_bound(op, device) + problem_.time(op, device) >= best_end) continue;
      const double end = probe(op, device).end;
      if (end < best_end) {
        best_end = end;
        best = device;
      }
    }
    return best;
  }

  void place(OpId op, DeviceId device);

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] double end(OpId op) const { return schedule_.end[op]; }
  // When the device has nothing more to do.
  [[nodiscard]] double device_free(DeviceId device) const;

  // The finished plan, re-timed.
  [[nodiscard]] Plan finish() const;

 private:
  struct Arrival {
    DeviceId device;
    double time;
  };
  struct Tentative {
    Timeline* timeline;
    double start;
  };

  [[nodiscard]] const double* known_arrival(TensorId tensor, DeviceId device) const;
  template <bool kCommit>
  double fetch(TensorId tensor, DeviceId from, DeviceId to);
  template <bool kCommit>
  double transfer(Timeline* out, Timeline* in, double ready, double length);
  template <bool kCommit>
  double inputs_ready(OpId op, DeviceId device);
  [[nodiscard]] double device_start(DeviceId device, double ready, double length) const;

  const Problem& problem_;
  Gaps gaps_;
  Placement placement_;
  Schedule schedule_;
  Table<DeviceId, std::vector<Timeline>> lanes_;
  Table<DeviceId, Timeline> out_ports_;
  Table<DeviceId, Timeline> in_ports_;
  Table<TensorId, std::vector<Arrival>> arrivals_;
  Table<TensorId, double> in_host_memory_;  // host: end of the `out`; < 0: not sent
  std::vector<Tentative> tentative_;
  std::vector<TensorId> by_producer_end_;
};

}  // namespace placewright
