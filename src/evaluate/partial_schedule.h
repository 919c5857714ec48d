// A schedule under construction: ops are placed one at a time, in topological order.
//
// The constructive planners (HEFT, ETF and their kin) ask `probe` where an op would run on each
// device and `place` it on one. Inputs from elsewhere are sent in the earliest gap of both ports.
// Cut overheads depend on placements still to come, so they are left to `retime` (schedule.h),
// which `finish` calls; it never makes an activity later where there are none. Where devices share
// resources a cut is most of what a wrong device costs: there an op is as long as with what its
// inputs cost by the placement so far, sends included, which its producers will bear.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evaluate/device_lanes.h"
#include "evaluate/resource_profile.h"
#include "evaluate/rules/transfers.h"
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
  // The part of it that is known once the producers are placed: no input can be there earlier.
  [[nodiscard]] double inputs_bound(OpId op, DeviceId device) const;

  // Where the op would run; infinite where an input cannot reach the device, or not all of them
  // have arrived at `latest`.
  [[nodiscard]] Slot probe(OpId op, DeviceId device, double latest = kInfinity);

  // The device among `candidates` on which the op ends first, or starts first (then: ends first);
  // ties: the one named first. Not valid where no input can reach any of them. Devices are probed
  // in order of a lower bound, so most are not probed at all.
  // `behind`, by kind of device, is added to the end where it is not empty.
  [[nodiscard]] DeviceId earliest_end(OpId op, std::span<const DeviceId> candidates,
                                      std::span<const double> behind = {});
  struct Choice {
    DeviceId device;
    Slot slot;
  };
  // `inputs` bounds their arrival from below, by device (`inputs_bound` at first); a probe raises
  // it.
  [[nodiscard]] Choice earliest_start(OpId op, std::span<const DeviceId> candidates,
                                      std::span<double> inputs);

  void place(OpId op, DeviceId device);

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] double end(OpId op) const { return schedule_.end[op]; }
  // When the device has nothing more to do.
  [[nodiscard]] double device_free(DeviceId device) const;

  // The finished plan, re-timed.
  [[nodiscard]] Plan finish() const;

 private:
  struct Arrival {
    SpaceId space;
    double time;
  };
  // Of all devices, each as full as what is placed so far makes it.
  class GapLanes {
   public:
    static constexpr bool kGaps = true;

    GapLanes(const Problem& problem, Gaps gaps);
    [[nodiscard]] double earliest(DeviceId device, double ready, double length);
    [[nodiscard]] double known_earliest(DeviceId device, double ready, double length) const;
    [[nodiscard]] double end(DeviceId device) const { return lanes_[device.index()].end(); }
    void take(DeviceId device, double start, double length);

   private:
    Gaps gaps_;
    std::vector<DeviceLanes> lanes_;  // by device
  };
  struct Tentative {
    Timeline* timeline;
    double start;
  };
  struct Prospect {
    double bound;  // of what is made least: the end and what is behind it, or the start
    double start_bound;
    std::uint32_t position;
    DeviceId device;

    // A heap has the least bound in front, of equal ones the device named first.
    friend bool operator<(const Prospect& a, const Prospect& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.position > b.position;
    }
  };

  [[nodiscard]] const double* known_arrival(TensorId tensor, SpaceId space) const;
  template <bool kCommit>
  double fetch(TensorId tensor, DeviceId from, DeviceId to, bool keep, double latest);
  // When the hop starts. `keep`: whether later transfers of the same probe must see it.
  template <bool kCommit>
  double transfer(const Hop& hop, double ready, bool keep, double latest);
  template <bool kCommit>
  double inputs_ready(OpId op, DeviceId device, double latest);
  [[nodiscard]] double length(OpId op, DeviceId device) const;
  [[nodiscard]] double known_overhead(TensorId input, DeviceId device) const;
  void note_reader(OpId op, DeviceId device);

  const Problem& problem_;
  Gaps gaps_;
  Placement placement_;
  Schedule schedule_;
  GapLanes lanes_;
  ResourceProfiles resources_;
  Table<SpaceId, Timeline> out_ports_;
  Table<SpaceId, Timeline> in_ports_;
  bool knows_overheads_;
  Table<TensorId, std::vector<DeviceId>> readers_;  // devices with a reader, each once
  Table<TensorId, std::vector<Arrival>> arrivals_;
  Table<TensorId, double> in_host_memory_;  // host: end of the `out`; < 0: not sent
  std::vector<Tentative> tentative_;
  std::vector<TensorId> by_producer_end_;
  std::vector<Prospect> prospects_;
};

}  // namespace placewright
