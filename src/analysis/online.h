// Models that arrive, and may be cancelled, while others run.
//
// A trace names copies of the models of a problem (the catalogue), each with its time of arrival.
// The planner knows nothing of later events. At every event all that has started stays as it is,
// and only the ops that have not started are planned again, to the end. A model that is cancelled
// before its last op has ended does not count: ops of it that have started run on, the others never
// start. A model that runs whole is stopped at that moment, as the run does at the backend's next
// op.
//
//   talos      two plans, of which the one with the lower predicted total is followed: every model
//              that has not begun whole on the device where it would end first, and Talos's rule
//              (planners/flow/flow_rule.h, at most 8 ops of a layer), given up where it cannot be
//              better. Tables are made once, and from layer to layer only what differs is changed
//              in the flow
//   afresh     the same with every table and every layer's flow made from nothing
//   aswm       each model whole on one device, chosen when it arrives and never again
//   tsam       the pair of largest speed-up, whenever a device is free
//   shortest   one model after the other, whole on its fastest device, of those that wait the
//              shortest first
//
// Ops are packed beforehand (planners/flow/chain_groups.h), since a packed op runs as one. Where
// devices share resources or memory, or cuts cost device time, a model is one op: what a cut costs
// is not known before all of its parts are placed, and `talos` gives each waiting model its set of
// cores and its turn (planners/flow/model_shares.h) in place of the two plans above, those of
// shortest first unless others are better by OnlineOptions::least_gain. A decision takes O(ops not
// started x (devices + a shortest path in the flow)).
//
// A long trace is played in windows: problems of the arrivals that are not over yet and the next
// ones, so that neither memory nor the time of a decision grows with all arrivals ever. Where
// memory could bind, all arrivals are in one, since what has come stays there. The verifier checks
// every window, and each arrival counts in the lower bound of the window in which it ends.
//
// OnlineRun is a simulation: ops take the time that the problem says. OnlinePlanner decides the
// same way for whoever runs the models for real (running/arrival_run.h) and knows how long they
// took.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coarsen/coarsening.h"
#include "problem/arrival_trace.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// `count` arrivals with exponentially distributed gaps of this mean, each of a model chosen at
// random. The same for the same seed.
ArrivalTrace poisson_trace(const Problem& catalogue, std::size_t count, double mean_gap,
                           std::uint64_t seed);

// The mean time that a model of the catalogue takes with all devices to itself: arrivals at this
// distance keep a machine just busy.
double mean_time_alone(const Problem& catalogue);

// All copies as one problem. Throws std::invalid_argument where the trace names a model that the
// catalogue does not have, or a name twice, or cancels before the arrival.
ProblemDraft trace_problem(const Problem& catalogue, const ArrivalTrace& trace);

enum class OnlineMethod { talos, afresh, aswm, tsam, shortest };
template <>
inline constexpr auto kSpellings<OnlineMethod> = std::to_array<Spelling<OnlineMethod>>({
    {OnlineMethod::talos, "talos"},
    {OnlineMethod::afresh, "afresh"},
    {OnlineMethod::aswm, "aswm"},
    {OnlineMethod::tsam, "tsam"},
    {OnlineMethod::shortest, "shortest"},
});

struct OnlineModel {
  bool complete = false;  // false: cancelled before its end
  double completion = 0;
  bool late = false;
};

// Seconds, over all decisions.
struct DecisionTime {
  double median = 0;
  double slowest_percent = 0;  // p99
};

// What was run, as a plan of the ops that had begun (all of the models that are complete).
struct OnlineSchedule {
  Problem problem;
  Plan plan;
};

struct OnlineRun {
  double total_completion = 0;      // of the models that are complete
  std::vector<OnlineModel> models;  // as in the trace
  std::size_t decisions = 0;
  DecisionTime latency;         // on the clock
  DecisionTime processor;       // of this thread: the latency on a machine with nothing else to do
  std::size_t planned_ops = 0;  // over all decisions
  double lower_bound = 0;       // with all arrivals of a window known
  // Nullopt: nothing was run, or the trace is played in several windows.
  std::optional<OnlineSchedule> schedule;
  std::string fault;  // what the verifier found, or that memory was short; empty: nothing
};

struct OnlineOptions {
  double pack_speedup = 2;  // 1: no packing
  double pack_time = 10;    // milliseconds
  // By which `talos` must be predicted to be better than shortest first where devices share
  // resources: models at once slow each other down, and later arrivals are not known.
  double least_gain = 0.03;
  // Every model as one op, which is how running/arrival_run.h runs them; always so where devices
  // share resources.
  bool whole = false;
  // The whole trace as one problem, so that OnlineRun::schedule is there however long it is.
  bool one_window = false;
};

// Decides what starts at an event. Made once for all events of a trace.
class OnlinePlanner {
 public:
  // `problem`: trace_problem, packed or not; it must outlive the planner.
  OnlinePlanner(const Problem& problem, OnlineMethod method, const OnlineOptions& options = {});
  OnlinePlanner(OnlinePlanner&&) noexcept;
  OnlinePlanner& operator=(OnlinePlanner&&) noexcept;
  ~OnlinePlanner();

  // Takes over what an earlier planner of the same method has settled, for another problem: `there`
  // has each model's number in that one, invalid where it is new.
  void go_on_from(const OnlinePlanner& earlier, const Table<ModelId, ModelId>& there);

  struct Decision {
    const Placement& placement;  // of all ops of the known models; valid until the next decision
    const Schedule& schedule;
  };
  // What has begun before `now` stays, and the other ops of the known models are planned to the
  // end. `placement` and `before` are the caller's own, not those of a decision. Nullopt if no
  // device has room for one of the ops.
  std::optional<Decision> decide(const Placement& placement, const Schedule& before, double now,
                                 const Table<ModelId, char>& known);

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The ops of each model as one, as far as the rules allow.
Coarsening whole_models(const Problem& problem);

OnlineRun run_online(const Problem& catalogue, const ArrivalTrace& trace, OnlineMethod method,
                     const OnlineOptions& options = {});

}  // namespace placewright
