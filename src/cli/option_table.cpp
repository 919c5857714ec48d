#include "cli/option_table.h"

#include <algorithm>

#include "cli/choice_option.h"
#include "planning/portfolio.h"

namespace placewright::cli {
namespace {

std::vector<std::string> planner_names() {
  std::vector<std::string> result;
  const Registry registry = planning_registry();
  for (const PlannerEntry& entry : registry.entries()) {
    // One name may stand for several planners, each for its objectives.
    if (std::find(result.begin(), result.end(), entry.name) == result.end()) {
      result.push_back(entry.name);
    }
  }
  return result;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  if (!option.get_snames().empty()) row.short_name = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) row.long_name = "--" + option.get_lnames().front();
  row.help = option.get_description();
  if (option.get_items_expected_max() > 0) {
    row.value = option.get_type_name();
    row.standard = option.get_default_str();
    const bool planner = row.long_name == "--planner" || row.long_name == "--planners";
    row.choices = planner ? planner_names() : choices_of(option);
  }
  return row;
}

}  // namespace

std::vector<VerbRow> verb_table(const CLI::App& program) {
  std::vector<VerbRow> verbs;
  for (const CLI::App* verb : program.get_subcommands({})) {
    if (verb->get_group().empty()) continue;  // hidden
    VerbRow row{verb->get_name(), verb->get_description(), {}, verb->get_footer(), {}};
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_positional()) {
        row.argument = option->get_type_name();
      } else {
        row.options.push_back(row_of(*option));
      }
    }
    verbs.push_back(std::move(row));
  }
  return verbs;
}

}  // namespace placewright::cli
