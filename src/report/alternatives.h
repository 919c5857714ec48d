// What other placements would cost: everything on one device, and one group of ops moved.

#pragma once

#include <optional>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct SingleDevice {
  DeviceId device;
  double value = kInfinity;
};

// The best plan that uses one device only; nullopt if no device can run and hold every op.
std::optional<SingleDevice> best_single_device(const Problem& problem);

enum class MoveVerdict {
  possible,
  unsupported,  // the device cannot run an op of the group, or a pin forbids it
  memory,       // the weights do not fit
  rule,         // a missing link, contiguity, the number of calls
};

struct Move {
  MoveVerdict verdict = MoveVerdict::unsupported;
  double value = kInfinity;  // of the plan after the move
};

// For each group of colocated ops and each device, the value if the group ran there: schedules in
// the order of the plan or of list scheduling, whichever is better; the other objectives as
// plan_of_placement says. The group's own device has the plan's value. Nullopt if that would
// take long: about ops x devices evaluations, so some hundred ops; nor for stages with replicas.
std::optional<std::vector<Move>> moves_of(const Problem& problem, const Plan& plan);

}  // namespace placewright
