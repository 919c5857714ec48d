#include "cli/planner_text.h"

#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_options.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

Json option_json(const Option& option) {
  Json json = {{"name", option.name},
               {"text", option.text},
               {"default", option_value_json(option.standard)}};
  if (!std::holds_alternative<bool>(option.standard) &&
      !std::holds_alternative<std::string>(option.standard)) {
    json["lower"] = finite_or_null(option.lower);
    json["upper"] = finite_or_null(option.upper);
  }
  if (!option.choices.empty()) json["choices"] = option.choices;
  return json;
}

}  // namespace

std::string objectives_text(const PlannerEntry& entry) {
  std::vector<std::string_view> names;
  for (const Objective objective : entry.objectives) names.push_back(name_of(objective));
  return names.size() == 4 ? "all" : fmt::format("{}", fmt::join(names, ", "));
}

Json option_value_json(const OptionValue& value) {
  return std::visit([](const auto& held) { return Json(held); }, value);
}

Json planner_json(const PlannerEntry& entry) {
  Json json = {{"name", entry.name},
               {"summary", entry.summary},
               {"objectives", Json::array()},
               {"role", name_of(entry.role)},
               {"strength", name_of(entry.strength)},
               {"options", Json::array()}};
  for (const Objective objective : entry.objectives) {
    json["objectives"].push_back(name_of(objective));
  }
  for (const Option& option : entry.options) json["options"].push_back(option_json(option));
  return json;
}

}  // namespace placewright::cli
