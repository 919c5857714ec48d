#include "cli/plan_options.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/planner_text.h"
#include "evaluate/placement_plan.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

// An expert split, or a plan written by hand, may be a bare placement or leave out its value.
Plan completed(const Problem& problem, Plan plan) {
  if (std::isfinite(plan.value)) return plan;
  if (!plan.schedule && plan.stages.empty() && plan.calls.empty()) {
    if (auto made = plan_of_placement(problem, plan.placement)) return std::move(*made);
  }
  plan.value = verified_value(problem, plan);
  return plan;
}

PlanFile parse_with_plan(const std::string& text, const std::string& path, const Problem& problem,
                         const std::vector<std::string>& op_ids) {
  PlanFile file = parse_plan(text, input_name(path), problem, op_ids);
  if (file.has_plan()) return file;
  throw InputError(
      input_name(path), "",
      file.reason.empty() ? "holds no plan" : fmt::format("holds no plan: {}", file.reason));
}

// A file that a plan refers to, as it was then and as it is now.
struct ReferredFile {
  std::string_view pointer;  // of the digest in the plan
  const std::string& path;
  const std::string& digest_then;
  const std::string& digest_now;
  std::string_view option;  // with which the file can be given apart
};

// A plan says nothing about a file that has changed since.
void require_unchanged(const ReferredFile& file, const std::string& plan_path) {
  if (file.digest_then.empty() || file.digest_then == file.digest_now) return;
  throw InputError(input_name(plan_path), std::string{file.pointer},
                   fmt::format("'{}' has changed since the plan was made; give it as {} to use it "
                               "all the same",
                               file.path, file.option));
}

}  // namespace

void PlanOptions::add_to(CLI::App& verb) {
  verb.add_option("plan", path, "The plan file; - is standard input")
      ->required()
      ->type_name("PLAN");
  problem.add_option_to(verb);
}

PlanWithProblem PlanOptions::read(const OutputOptions& output) const {
  problem.check();
  const std::string text = read_whole(path);
  PlanReference reference = peek_plan(text, path);
  const ProblemReference named = reference.problem;
  problem.override(reference);
  const bool apart = !problem.path.empty();
  ProblemFile file = problem_of_plan(
      reference, path, apart ? std::optional<std::string>(problem.path) : std::nullopt);
  const bool embedded = reference.embedded && !apart;
  if (embedded && !problem.cluster.empty()) {
    throw UsageError("--cluster: the plan holds its own problem and devices; give --problem too");
  }
  if (!embedded && !apart) {
    require_unchanged({"/problem/digest", file.file, named.digest, file.digest, "--problem"}, path);
  }
  if (!embedded && problem.cluster.empty()) {
    require_unchanged({"/problem/cluster/digest", named.cluster_path, named.cluster_digest,
                       file.cluster_digest, "--cluster"},
                      path);
  }
  problem.apply_to(file.draft);
  output.warn(file.warnings);

  const std::vector<std::string> op_ids = file.op_ids;
  Problem built = build_problem(std::move(file));
  PlanFile plan_file = parse_with_plan(text, path, built, op_ids);
  output.warn(plan_file.warnings);
  Plan plan = completed(built, std::move(plan_file.plan));
  return {std::move(built), std::move(plan), std::move(plan_file)};
}

std::optional<Plan> start_plan(const std::string& path, const Problem& problem,
                               const std::vector<std::string>& op_ids) {
  if (path.empty()) return std::nullopt;
  return completed(problem, parse_with_plan(read_whole(path), path, problem, op_ids).plan);
}

ProblemReference reference_to(const ProblemFile& file, const ProblemOptions& options) {
  ProblemReference reference{.path = options.path, .digest = file.digest};
  if (!options.format.empty()) reference.format = file.format;
  if (!options.cluster.empty()) {
    reference.cluster_path = options.cluster;
    reference.cluster_digest = file.cluster_digest;
  }
  return reference;
}

void save_plan(const std::string& path, const Problem& problem, const PlanOutcome& outcome,
               const Budget& budget, const ProblemReference& reference, bool embed) {
  PlanFile file;
  file.plan = *outcome.answer.plan;
  file.certificate = outcome.answer.certificate;
  file.status = outcome.answer.status();
  file.planner = outcome.planner;
  for (const Option& option : outcome.settings.options()) {
    file.settings[option.name] = option_value_text(outcome.settings.value(option.name));
  }
  if (outcome.coarsening) file.settings["coarsen"] = name_of(outcome.coarsening->method);
  file.seed = budget.seed;
  file.seconds = outcome.seconds;
  file.problem = reference;

  const auto& ops = problem.draft().ops;
  const bool pinned =
      std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.pinned_to.valid(); });
  const bool out_of_reach = reference.path == "-" || reference.cluster_path == "-" || pinned;
  write_whole(path, write_plan(problem, file, {.embed = embed || out_of_reach, .path = path}));
}

}  // namespace placewright::cli
