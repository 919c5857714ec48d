// Planners for call-latency: one sample, accelerators run contiguous sets of ops as calls.

#pragma once

#include "planners/planner.h"

namespace placewright {

PlannerEntry calls_chain();
PlannerEntry calls_exact();
PlannerEntry calls_search();
PlannerEntry exhaustive_calls();

}  // namespace placewright
