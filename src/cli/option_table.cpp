#include "cli/option_table.h"

#include <algorithm>
#include <string_view>

#include "coarsen/coarsening.h"
#include "formats/problem_file.h"
#include "planning/portfolio.h"
#include "problem/objective.h"

namespace placewright::cli {
namespace {

template <class Value>
std::vector<std::string> names(std::initializer_list<Value> values) {
  std::vector<std::string> result;
  for (const Value value : values) result.emplace_back(name_of(value));
  return result;
}

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

std::vector<std::string> choices_of(std::string_view option) {
  if (option == "--planner" || option == "--planners") return planner_names();
  if (option == "--objective") {
    return names({Objective::throughput, Objective::call_latency, Objective::latency,
                  Objective::total_completion});
  }
  if (option == "--format") {
    return names({Format::placewright, Format::moirai, Format::msr, Format::talos});
  }
  if (option == "--contiguity") {
    return names({Contiguity::none, Contiguity::joint, Contiguity::per_device});
  }
  if (option == "--transfers") {
    return names({TransferMode::sequential, TransferMode::overlapped, TransferMode::duplex});
  }
  if (option == "--training") return names({TrainingMode::interleaved, TrainingMode::phased});
  if (option == "--coarsen") {
    std::vector<std::string> methods;
    for (const CoarsenMethod method : coarsen_methods()) methods.emplace_back(name_of(method));
    return methods;
  }
  if (option == "--memory") return names({MemoryModel::resident, MemoryModel::peak});
  return {};
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  if (!option.get_snames().empty()) row.short_name = "-" + option.get_snames().front();
  if (!option.get_lnames().empty()) row.long_name = "--" + option.get_lnames().front();
  row.help = option.get_description();
  if (option.get_items_expected_max() > 0) {
    row.value = option.get_type_name();
    row.standard = option.get_default_str();
    row.choices = choices_of(row.long_name);
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
