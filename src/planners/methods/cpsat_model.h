// The schedule of a problem, or of a part of it, as a model for CP-SAT.
//
//   decide    a device for each colocation group, a start for each op and each transfer
//   minimise  the latest end (`latency`),
//             or the sum of weight x (completion - arrival) (`total-completion`)
//
// Method. A literal for each group and device; one start variable per op with an optional interval
// per device (no overlap where a device has one lane, cumulative otherwise); per tensor a literal
// for each pair of memory spaces it may travel between, with intervals on the sender's out-port and
// the receiver's in-port under congestion (host: one `out`, one `in` per space of accelerators).
// Cut overheads make lengths depend on those literals and, inside a space, on who reads beside the
// producer. Memory rows count shared weights once. Resources that devices share are cumulative over
// the intervals of all their devices. The rows
//
//   start(v) >= sum over d of head(v, d) x[v, d]
//   makespan >= start(v) + sum over d of tail(v, d) x[v, d]
//
// (shortest way to, and from, an op on a device, unavoidable transfers included) and the work of
// each device are implied; they make the linear relaxation as strong as the simple bounds from the
// outset.
//
// Where a transfer takes the same between any two spaces, and ports and overheads do not count, one
// literal for each edge says whether it is paid. Of devices that differ in name only, each is first
// used by an op before the first op of the next one, so that one of all equal solutions is left.
//
// Numbers. CP-SAT counts in integers. Times are multiplied by a scale and rounded down, so every
// real schedule is a schedule of the model and the model's bound is a true bound. The scale keeps
// the loss of a chain of all activities below 1e-6 of the value; where all times are multiples of a
// decimal fraction it loses nothing. Plans are re-timed in doubles (evaluate/schedule.h), so a
// plan's value is its true value.
//
// Supports: links (with missing links) and host interconnect, congestion or not, lanes, cut
// overheads, pins, unsupported ops, colocation, resident memory, shared weights, arrivals, weights,
// shared resources, cut costs by tensor, any memory spaces (inside one nothing travels, and a
// hand-over costs overheads alone).
// Does not know peak memory: its bounds hold there, its plans may not fit.
//
// Cost: O((ops + edges x memory spaces) x devices) variables and constraints:
// 10,000 of these take 0.12 s and 50 MB, CP-SAT's first look at them included. The search is
// exponential: a module of 14 ops on 4 devices is proved in about 0.02 s without congestion and
// 0.15 s with it. CP-SAT's probing and its linear relaxation are off: they cost far more here than
// they gain.

#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

enum class Facility { compute, out_port, in_port };

// What is decided and what is given.
//
// Ops outside the scope are given: those that share a tensor with an op inside have a device and,
// when they produce it, the time at which they end, or, when they read it, the time from their
// start to the end of everything. A tensor from outside that ops outside read as well is sent again
// to the scope's devices (never too early, perhaps too often). With ops outside, only `latency` has
// a meaning.
struct ScheduleScope {
  // A time when a resource is taken by something outside.
  struct Busy {
    Facility resource = Facility::compute;
    DeviceId device;
    double start = 0;
    double end = 0;
  };
  // What follows on a resource after its last use inside: it takes `time` until the end of
  // everything.
  struct Tail {
    Facility resource = Facility::compute;
    DeviceId device;
    double time = 0;
  };

  std::vector<OpId> ops;      // inside
  Placement given;            // valid: the op runs there, be it inside or outside
  Table<OpId, double> ends;   // of producers outside; empty: all 0
  Table<OpId, double> tails;  // of readers outside; empty: all 0
  std::vector<Busy> busy;
  std::vector<Tail> after;
  std::vector<std::vector<OpId>> sequences;  // of ops inside that run one after the other
  bool memory = true;                        // whether memory is limited

  // All ops, nothing given.
  static ScheduleScope whole(const Problem& problem);
  // All ops; those that are not free keep their device and, on each device, their order. Transfers
  // are decided again.
  static ScheduleScope around(const Problem& problem, const Plan& plan, std::span<const OpId> free);
};

struct ScheduleLimits {
  double seconds = std::numeric_limits<double>::infinity();
  double deterministic_time = std::numeric_limits<double>::infinity();  // about seconds, repeatable
  int workers = 1;
  std::uint64_t seed = 1;
  // One worker goes through all of CP-SAT's strategies in turn, local search among them: for
  // problems too large to be proved.
  bool take_turns = false;
  const std::atomic<bool>* stop = nullptr;
};

struct ScheduleSolution {
  bool found = false;
  bool complete = false;          // the search ended: `found` is optimal, or there is no solution
  double value = kInfinity;       // in the model, never above the true value of the same decisions
  double lower_bound = 0;         // no solution is below; kInfinity when proved that there is none
  double deterministic_time = 0;  // that was used
  Placement placement;            // as `given` for the ops outside
  // Ops inside and, under congestion, their transfers, between any devices of the two spaces; times
  // of the model.
  Schedule schedule;
  std::string error = {};  // the solver could not be run
};

class ScheduleModel {
 public:
  // Solutions above `at_most` are left out; a finite one makes the model smaller.
  ScheduleModel(const Problem& problem, ScheduleScope scope, double at_most = kInfinity);
  ScheduleModel(ScheduleModel&&) noexcept;
  ScheduleModel& operator=(ScheduleModel&&) noexcept;
  ~ScheduleModel();

  // Start the search from these decisions (those of the ops inside). They need not be feasible.
  void hint(const Placement& placement, const Schedule& schedule);
  // Ask for solutions that are better than this by more than rounding. Stays for later solves.
  void require_below(double value);
  // Tell a lower bound that is known. Stays for later solves.
  void require_at_least(double bound);

  ScheduleSolution solve(const ScheduleLimits& limits);

  // Variables and constraints, to judge whether it is worth a try.
  [[nodiscard]] std::size_t size() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// The plan that a solution over all ops stands for, re-timed.
Plan plan_of(const Problem& problem, const ScheduleSolution& solution);

}  // namespace placewright
