// Pipelines: `throughput`.

#pragma once

#include "problem/plan.h"
#include "problem/problem.h"
#include "verify/findings.h"

namespace placewright::verifying {

// Both suppose a placement that check_placement accepts.
void check_pipeline(const Problem& problem, const Plan& plan, Findings& findings);
double pipeline_value(const Problem& problem, const Plan& plan);

}  // namespace placewright::verifying
