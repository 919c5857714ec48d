// EventRun: a schedule made while time passes.
//
// The clock stands at an event (the end of an op, the arrival of a model). Ops are ready whose
// inputs have been produced and whose model has arrived; a rule starts some of them on devices, and
// the clock moves to the next event. A started op takes a lane of its device, and the device's
// resources, from the moment its inputs are there and both are free, never before now; inputs from
// another memory space are sent then, in the order of the starts, in append order on the ports.
//
// A run can begin in mid-air (`resume`): what has started before stays, the rest is open again.
// That is what online planning needs. Cut overheads are left to `retime` (evaluate/schedule.h).
//
// O(inputs) to probe, O(inputs + log events) to start.

#pragma once

#include <functional>
#include <queue>
#include <span>
#include <vector>

#include "evaluate/resource_profile.h"
#include "evaluate/rules/starts.h"
#include "evaluate/rules/transfers.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

class EventRun {
 public:
  explicit EventRun(const Problem& problem);

  // The clock at `now`. Of `before`, what begins earlier than `now` is kept and the rest forgotten;
  // of the models only those in `known` exist (they arrive when they arrive). By value: both may be
  // this run's own.
  void resume(Placement placement, Schedule before, double now, const Table<ModelId, char>& known);

  [[nodiscard]] double now() const { return now_; }
  // In the order in which they became ready.
  [[nodiscard]] std::span<const OpId> ready() const { return ready_; }
  [[nodiscard]] bool started(OpId op) const { return placement_[op].valid(); }
  [[nodiscard]] double end(OpId op) const { return schedule_.end[op]; }
  // Lanes on which an op could start now; none while others have the device's resources.
  [[nodiscard]] std::size_t idle_lanes(DeviceId device) const;
  // When the device's next lane is free, and its resources.
  [[nodiscard]] double free_at(DeviceId device) const;
  // When the inputs could be there if they were sent now and no transfer had to wait.
  [[nodiscard]] double inputs_at(OpId op, DeviceId device) const;
  // Whether anything is running or to come.
  [[nodiscard]] bool events_ahead() const { return !events_.empty(); }

  void start(OpId op, DeviceId device);
  // To the next event; false if there is none.
  bool advance();

  [[nodiscard]] const Placement& placement() const { return placement_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // All ops started: the plan, re-timed.
  [[nodiscard]] Plan finish() const;

 private:
  [[nodiscard]] std::size_t slot(TensorId tensor, DeviceId device) const {
    return tensor.index() * (problem_.space_count() + 1) + problem_.space(device).index();
  }
  [[nodiscard]] std::size_t host_slot(TensorId tensor) const {
    return tensor.index() * (problem_.space_count() + 1) + problem_.space_count();
  }
  [[nodiscard]] double resources_free(DeviceId device, double from) const;
  void begin();
  void arrive(ModelId model);
  void complete(OpId op);
  double fetch(TensorId tensor, DeviceId from, DeviceId to);
  void occupy_lane(DeviceId device, double from, double until);

  struct Event {
    double time;
    OpId ended;        // valid: this op ends
    ModelId arriving;  // valid: this model arrives
    // The earliest first; of equal times the smaller op.
    friend bool operator<(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.ended > b.ended;
    }
  };

  const Problem& problem_;
  double now_ = 0;
  Placement placement_;
  Schedule schedule_;
  std::vector<OpId> ready_;
  Table<OpId, std::uint32_t> missing_;
  Table<ModelId, char> known_;
  Rows<ModelId, OpId> sources_;
  LaneTimes lanes_;
  ResourceProfiles resources_;
  Table<DeviceId, double> least_share_;  // of an op, where the device has resources
  PortTimes ports_;
  std::vector<double> there_;  // tensor x (space, host memory): when; < 0: not sent
  std::priority_queue<Event> events_;
};

// What a rule does at an event: starts ops of the run.
using LayerRule = std::function<void(EventRun&)>;

// Runs from the first event until every op has started; nullopt if the rule starts none although
// nothing else can happen, or `stop` says so.
bool run_events(EventRun& run, const LayerRule& rule, const std::function<bool()>& stop);

}  // namespace placewright
