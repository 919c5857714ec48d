#include "cli/plan_options.h"

namespace placewright::cli {

void PlanOptions::add_to(CLI::App& verb) {
  verb.add_option("plan", path, "The plan file; - is standard input")
      ->required()
      ->type_name("PLAN");
  problem.add_option_to(verb);
}

OpenedPlan PlanOptions::read(const OutputOptions& output) const {
  problem.check();
  OpenedPlan opened =
      open_plan(path, {.problem = problem.path,
                       .read = problem.read_options(),
                       .change = [this](ProblemDraft& draft) { problem.apply_to(draft); }});
  output.warn(opened.file.warnings);
  return opened;
}

std::optional<Plan> start_plan(const std::string& path, const Problem& problem,
                               const std::vector<std::string>& op_ids) {
  if (path.empty()) return std::nullopt;
  return open_plan_of(problem, path, op_ids).plan;
}

}  // namespace placewright::cli
