// What CP-SAT gets for a pipeline: whole numbers up to a limit, and what is left of a planner's
// budget.

#pragma once

#include "planners/planner.h"
#include "solvers/cp_sat.h"

namespace placewright::throughput {

inline constexpr double kTimeSteps = 0x1p32;  // whole numbers up to the highest value
inline constexpr double kByteSteps = 0x1p40;  // ... and up to a device's memory

solvers::CpLimits cp_sat_limits(const Control& control);

}  // namespace placewright::throughput
