// A plan as text for people and as JSON for programs.

#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planning/service.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::cli {

// Value, bound, gap, status, planner, time, gain over no plan, and a table of devices; `verbose`:
// where every op is.
std::string outcome_text(const Problem& problem, const PlanOutcome& outcome, bool verbose);

// "infeasible: the ops need 45 bytes …"
std::string no_plan_text(const PlanOutcome& outcome);

// The object of `plan --json`.
nlohmann::ordered_json outcome_json(const Problem& problem, const PlanOutcome& outcome);

std::string device_table(const Problem& problem, const Plan& plan);
nlohmann::ordered_json devices_json(const Problem& problem, const Plan& plan);

}  // namespace placewright::cli
