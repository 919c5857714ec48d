// What a plan is predicted to gain over the models as they come (planning/uncut_plan.h), for
// problems whose costs were measured or estimated, not stated by a file.

#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::cli {

// "1.04 times as fast as the model uncut on cpu:0-1 (predicted)"; empty where there is nothing to
// compare.
std::string uncut_sentence(const Problem& problem, const Plan& plan);

// The same as an object; null where there is nothing to compare.
nlohmann::ordered_json uncut_json(const Problem& problem, const Plan& plan);

}  // namespace placewright::cli
