// What the registry says of planners, as tables and documents.

#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planners/planner.h"

namespace placewright::cli {

std::string objectives_text(const PlannerEntry& entry);
nlohmann::ordered_json option_value_json(const OptionValue& value);
nlohmann::ordered_json planner_json(const PlannerEntry& entry);

}  // namespace placewright::cli
