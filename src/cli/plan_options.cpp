#include "cli/plan_options.h"

#include <fmt/format.h>

#include "backends/registry.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace placewright::cli {

void PlanOptions::add_to(CLI::App& verb) {
  verb.add_option("plan", path, "The plan file; - is standard input")
      ->required()
      ->type_name("PLAN");
  problem.add_option_to(verb);
}

OpenedPlan PlanOptions::read(const OutputOptions& output) const {
  problem.check();
  if (path != "-" && backend_reading(path) != nullptr) {
    throw UsageError(fmt::format(
        "{} is a model, not a plan; 'placewright plan {} -o plan.json' makes a plan from it", path,
        path));
  }
  OpenedPlan opened =
      open_plan(path, {.problem = problem.path,
                       .read = problem.read_options(),
                       .change = [this](ProblemDraft& draft) { problem.apply_to(draft); }});
  output.warn(opened.file.warnings);
  return opened;
}

bool is_valid(const OpenedPlan& opened) {
  const auto violations = opened.violations();
  if (violations.empty()) return true;
  tell(fmt::format("placewright: the plan is not valid: {} ('placewright check' lists all)\n",
                   printable(violations.front().message)));
  return false;
}

std::optional<Plan> start_plan(const std::string& path, const Problem& problem,
                               const std::vector<std::string>& op_ids) {
  if (path.empty()) return std::nullopt;
  return open_plan_of(problem, path, op_ids).plan;
}

}  // namespace placewright::cli
