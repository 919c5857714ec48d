// A run as a file: what was measured, with the names that the problem has for it.

#pragma once

#include <vector>

#include "formats/run_file.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/baselines.h"
#include "running/execution.h"

namespace placewright {

RunFile run_file_of(const Problem& problem, const Plan& plan, const RunResult& result,
                    const std::vector<Baseline>& baselines);

}  // namespace placewright
