// The models as they come, none of them cut: what a machine does without a plan.
//
//   schedules   all models on one device, one after the other, the shortest for its weight first
//   throughput  a replica on every device of the kind, or on one where the rules allow no more
//
// O(ops log ops + tensors), and what the verifier takes.

#pragma once

#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Nullopt if the devices of the kind may not run the models whole, and for `call-latency`.
std::optional<Plan> uncut_plan(const Problem& problem, KindId kind);

// The best over all kinds of devices.
std::optional<Plan> best_uncut_plan(const Problem& problem);

// The devices that such a plan uses.
std::vector<DeviceId> devices_of_uncut(const Plan& plan);

// Whether any plan leaves the models as they come: all on one device, or all in one stage.
bool is_uncut(const Plan& plan);

}  // namespace placewright
