// The verifier: checks a finished plan against its problem from first principles.
//
// It implements docs/semantics.md on its own, shares no code with the evaluators and trusts nothing
// that the plan says about itself: durations, loads, transfers and the value are computed again and
// compared. Every violation is reported, not only the first; where one makes others meaningless (an
// op without a device has no duration) the checks that build on it are left out.
//
// Cost: O((ops + tensors + consumers + transfers) log) for schedules and calls, and a pass over the
// graph for each device where contiguity is asked per device or calls are derived from a placement.
//
// Times are compared with 1e-9 of the plan's horizon, so that intervals may touch exactly; values,
// loads and memory with 1e-9 of themselves.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placewright/problem/plan.h"
#include "placewright/problem/problem.h"

namespace placewright {

enum class ViolationCode {
  // any plan
  placement_incomplete,  // an op has no device, or one that does not exist
  unsupported_device,    // the device cannot run the op
  pin_broken,            // a pinned op runs elsewhere
  colocation_broken,     // ops that must share a device do not
  no_link,               // a tensor is needed on a device that it cannot reach
  memory_exceeded,       // weights do not fit
  peak_memory_exceeded,  // weights fit, but not with the tensors alive at some moment
  resource_exceeded,     // ops, stages or calls that run at once take more than there is
  value_wrong,           // the plan's value is not what its schedule, stages or calls give
  bound_above_value,     // the plan states a lower bound that its own value disproves
  gap_wrong,             // the stated gap is not that of value and bound
  status_wrong,          // optimal with a gap, feasible without one, or no status of a plan

  // latency, total-completion
  schedule_missing,          // no schedule, or not a start and an end for each op
  not_a_number,              // a time is negative, infinite or not a number (also in calls and
                             // stages)
  op_duration_wrong,         // end - start is not what the op takes
  starts_before_arrival,     // an op starts before its model arrives
  input_not_arrived,         // an op starts before an input is in its space
  device_overlap,            // a device runs more ops at once than it has lanes
  transfer_missing,          // a tensor is read in another space and does not travel there
  transfer_duplicate,        // ... travels there twice
  transfer_unneeded,         // ... travels to a space where nobody reads it, or to its own
  transfer_receiver_wrong,   // ... travels to another device of the space than its first reader's
  transfer_endpoints_wrong,  // a transfer names no tensor, a wrong leg, or not the producer's
                             // device
  transfer_duration_wrong,   // end - start is not what the transfer takes
  transfer_too_early,        // a transfer starts before its tensor is there
  port_overlap,              // congestion: a port carries two transfers at once

  // throughput
  stages_inconsistent,   // not every op in one stage, every device in at most one
  stages_out_of_order,   // joint contiguity: a stage feeds an earlier one of the list
  replicas_not_allowed,  // too many devices share a stage, or devices of different kinds
  not_contiguous,        // devices wait for each other in a circle
  stage_load_wrong,      // the load that the plan states is not the stage's
  period_too_short,      // shared resources: the period is below the load of a stage

  // call-latency
  calls_inconsistent,    // a call names what it must not, or an op is in two calls
  call_missing,          // an op on an accelerator is in no call
  too_many_calls,        // more calls of a device than the rules allow
  calls_deadlock,        // calls and host ops wait for each other in a circle
  call_start_too_early,  // a call starts before its inputs are in host memory
  call_duration_wrong,   // end - start is not what the call takes
  call_overlap,          // a device runs two calls at once

  further_violations,  // there are more than are listed
};

// Kebab case: "port-overlap".
std::string_view name_of(ViolationCode code);
std::span<const ViolationCode> violation_codes();

struct Violation {
  ViolationCode code;
  std::string message;  // one plain sentence that names ops, devices, tensors, with numbers
  std::vector<OpId> ops;
  std::vector<DeviceId> devices;
};

// Everything that is wrong with the plan; empty for a valid one. At most kListedViolations are
// listed, then one `further_violations` says how many there are besides.
//
// A throughput plan without stages stands for one stage on each device that has ops; a call-latency
// plan without calls for those of `timed_calls_of`, and is not valid where they use resources.
inline constexpr std::size_t kListedViolations = 1000;
std::vector<Violation> verify(const Problem& problem, const Plan& plan);

// What a plan file states of its plan beside the plan itself. Without a bound only `feasible` can
// be told from the value.
struct Statement {
  Status status = Status::feasible;
  std::optional<double> lower_bound;
  std::optional<double> gap;
};

// What of the statement does not fit a plan of this value. Whether the bound holds is for a proof
// to say, not for the verifier.
std::vector<Violation> verify(const Statement& statement, double value);

// The value by the plan's own schedule, stages or calls, whatever `plan.value` says; infinite where
// the plan is too broken to have one. Where the stages of a pipeline share resources the plan
// chooses its period: `plan.value` if the stages fit into it, else the end of the last stage.
double verified_value(const Problem& problem, const Plan& plan);

// The loads of the plan's stages in their order, whatever the plan says; empty where it has none or
// is too broken.
std::vector<double> verified_loads(const Problem& problem, const Plan& plan);

// The calls of a placement that comes without: the call of an op on an accelerator is the largest
// number of times that a path ending in it has left the device's ops and come back. Timed as early
// as possible and listed in order of start; all times are infinite where calls and host ops wait
// for each other in a circle. Where devices use resources each call starts as early as they are
// free beside the calls before it: of those that wait for no other, the one of the smallest device
// first.
std::vector<Call> timed_calls_of(const Problem& problem, const Placement& placement);

}  // namespace placewright
