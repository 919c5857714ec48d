// The MSR expert splits {fpgas: [{nodes}], cpus: [{nodes}]} read as plans.

#pragma once

#include <span>
#include <string>

#include "formats/json.h"
#include "formats/plan_file.h"

namespace placewright {

// The lists of `fpgas` go to the accelerators and those of `cpus` to the host devices, each in the
// order of the problem's devices. Ops that no list names go where the other ops of their colocation
// group are (the backward ops of training). Throws InputError.
PlanFile plan_of_split(JsonValue root, const Problem& problem, std::span<const std::string> op_ids);

}  // namespace placewright
