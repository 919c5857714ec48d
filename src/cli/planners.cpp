#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_options.h"
#include "cli/planner_text.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "planning/portfolio.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright planners\n"
    "  placewright planners --verbose     with the options that --option takes\n"
    "  placewright planners --json";

// What the project stands on first, `auto` before all.
std::vector<PlannerEntry> by_role(const Registry& registry) {
  std::vector<PlannerEntry> entries = registry.entries();
  const auto place = [](const PlannerEntry& entry) {
    return std::pair(entry.role, entry.effort != Effort::portfolio);
  };
  std::ranges::stable_sort(entries, {}, place);
  return entries;
}

void print_table(const std::vector<PlannerEntry>& entries, bool with_options) {
  TextTable table({{"planner"}, {"role"}, {"strength"}, {"objectives"}, {"what it does"}});
  for (const PlannerEntry& entry : entries) {
    table.add({entry.name, std::string{name_of(entry.role)}, std::string{name_of(entry.strength)},
               objectives_text(entry), entry.summary});
    if (!with_options) continue;
    for (const Option& option : entry.options) {
      table.add(
          {"", "", "", "",
           fmt::format("--option {}={}  {}", option.name, text_of(option.standard), option.text)});
    }
  }
  fmt::print("{}", table.text());
}

ExitCode planners(const OutputOptions& output) {
  const std::vector<PlannerEntry> entries = by_role(planning_registry());
  if (output.json) {
    nlohmann::ordered_json document = nlohmann::ordered_json::array();
    for (const PlannerEntry& entry : entries) document.push_back(planner_json(entry));
    print_json(document);
  } else if (!output.quiet) {
    print_table(entries, output.verbose);
  }
  return ExitCode::success;
}

}  // namespace

void add_planners(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("planners", "List the planners");
  const auto output = std::make_shared<OutputOptions>();
  output->add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, output] { action = [output] { return planners(*output); }; });
}

}  // namespace placewright::cli
