// The value of a placement as a schedule (`latency`, `total-completion`; docs/semantics.md).
//
// A schedule follows from a placement and an order: every activity (op or transfer) starts as early
// as the activities before it on its device, resources or ports allow. Three ways to give the
// order:
// The rules that they keep are those of evaluate/rules/.
//
//   ScheduleEvaluator  a topological order of the ops. Inputs from elsewhere are sent just before
//                      the op that needs them. O(ops + tensors), no allocation: the inner loop of
//                      searches.
//   dispatch           a priority for each op. Events are followed in time; whatever is free takes
//                      the most urgent op or transfer that is ready.
//                      O((ops + tensors) log + events x devices).
//   retime             the start times of another schedule: the order is kept on every device and
//                      port, the times are made as early as possible. O((ops + tensors) log).

#pragma once

#include <span>
#include <vector>

#include "evaluate/resource_profile.h"
#include "evaluate/rules/durations.h"
#include "evaluate/rules/starts.h"
#include "evaluate/rules/transfers.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// What `latency` or `total-completion` sees in the ends of the ops.
double schedule_value(const Problem& problem, const Table<OpId, double>& end);

class ScheduleEvaluator {
 public:
  explicit ScheduleEvaluator(const Problem& problem);

  // kInfinity when a tensor would need a link that does not exist.
  double value(std::span<const OpId> order, const Placement& placement);

  // The same with all times, for the plan.
  Schedule schedule(std::span<const OpId> order, const Placement& placement);

 private:
  struct Arrival {
    SpaceId space;
    double time;
  };

  template <class Recorder>
  double run(std::span<const OpId> order, const Placement& placement, Recorder& recorder);
  template <class Recorder>
  double fetch(TensorId tensor, DeviceId from, DeviceId to, Recorder& recorder);
  template <class Recorder>
  double send(TensorId tensor, DeviceId from, DeviceId to, Recorder& recorder);

  const Problem& problem_;
  Table<OpId, double> end_;
  Table<OpId, double> durations_;  // with overheads only
  LaneTimes lanes_;
  ResourceProfiles resources_;
  PortTimes ports_;
  // Where a tensor with several consumers has arrived: at most min(consumers, spaces) entries each.
  std::vector<Arrival> arrivals_;
  Table<TensorId, std::uint32_t> arrivals_begin_;
  Table<TensorId, std::uint32_t> arrivals_count_;
  Table<TensorId, double> out_end_;  // host: when the tensor is in host memory; < 0: not yet sent
};

// A topological order that takes the ready op of highest priority first.
std::vector<OpId> list_order(const Problem& problem, const Table<OpId, double>& priority);

// The ops by start time; those that start together, in topological order.
std::vector<OpId> order_of(const Problem& problem, const Schedule& schedule);

// Event-driven list scheduling.
Schedule dispatch(const Problem& problem, const Placement& placement,
                  const Table<OpId, double>& priority);

// The earliest times that keep the order of `shape` on every device and port. `shape` may lack
// transfers or have inexact times; those that the placement does not need are dropped.
Schedule retime(const Problem& problem, const Placement& placement, const Schedule& shape);

// Over the devices that may run the op; 0 if none may.
double mean_time(const Problem& problem, OpId op);

// The priority of HEFT: the longest path from the op's start to the end of the graph, with mean
// times over the devices that may run an op and mean transfer times over pairs of devices.
Table<OpId, double> upward_ranks(const Problem& problem);

// Wraps a schedule as a plan, with its value.
Plan schedule_plan(const Problem& problem, Placement placement, Schedule schedule);

}  // namespace placewright
