// Pipelines: `throughput`.

#pragma once

#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"
#include "verify/findings.h"

namespace placewright::verifying {

// All suppose a placement that check_placement accepts.
void check_pipeline(const Problem& problem, const Plan& plan, Findings& findings);
double pipeline_value(const Problem& problem, const Plan& plan);
// Of the stages that the plan lists; empty where they are inconsistent.
std::vector<double> loads_of_stages(const Problem& problem, const Plan& plan);

}  // namespace placewright::verifying
