// Planners for schedules: the latency of one inference on unequal devices, total completion of
// several.

#pragma once

#include <string>

#include "planners/planner.h"

namespace placewright {

PlannerEntry decompose();
// Why it cannot serve the graph, on however few devices; empty: it can.
std::string too_wide_for_decompose(const Problem& problem);
PlannerEntry few_devices();
PlannerEntry multilevel_schedules();
PlannerEntry repeats_in_schedules();
PlannerEntry hubs();
PlannerEntry search();
PlannerEntry cpsat_schedule();

}  // namespace placewright
