// The public interface, on top of formats/, planning/ and verify/. The program's verbs call it too.

#include "placewright/placewright.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "formats/input_error.h"
#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/service.h"

namespace placewright {
namespace {

// An expert split, or a plan written by hand, may be a bare placement or leave out its value, or
// the loads or offsets of its stages.
Plan completed(const Problem& problem, Plan plan) {
  // Who has shared resources first is for the plan to state (semantics.md, "call-latency").
  const bool must_state_calls =
      record_of(problem.objective()).form == PlanForm::calls && problem.resource_count() > 0;
  if (plan.is_placement() && !must_state_calls && !std::isfinite(plan.value)) {
    if (auto made = plan_of_placement(problem, plan.placement)) return std::move(*made);
  }
  const std::vector<double> loads = verified_loads(problem, plan);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (!std::isfinite(plan.stages[i].load)) plan.stages[i].load = loads[i];
  }
  if (!loads.empty()) state_offsets(problem, plan);
  if (!std::isfinite(plan.value)) plan.value = verified_value(problem, plan);
  return plan;
}

PlanFile read_whole_plan(const PlanDocument& document, const std::string& path,
                         const Problem& problem, std::span<const std::string> op_ids) {
  PlanFile file = document.read(problem, op_ids);
  if (!file.has_plan()) {
    throw InputError(
        input_name(path), "",
        file.reason.empty() ? "holds no plan" : fmt::format("holds no plan: {}", file.reason));
  }
  file.plan = completed(problem, std::move(file.plan));
  return file;
}

// A file that a plan refers to, as it was then and as it is now.
struct ReferredFile {
  std::string_view pointer;  // of the digest in the plan
  const std::string& path;
  const std::string& digest_then;
  const std::string& digest_now;
  std::string_view noun;
};

// A plan says nothing about a file that has changed since.
void require_unchanged(const ReferredFile& file, const std::string& plan_path) {
  if (file.digest_then.empty() || file.digest_then == file.digest_now) return;
  throw InputError(
      input_name(plan_path), std::string{file.pointer},
      fmt::format("'{}' has changed since the plan was made; give it as the {} to use it "
                  "anyway",
                  file.path, file.noun));
}

ProblemFile problem_for_plan(const PlanDocument& document, const std::string& path,
                             const OpenPlanOptions& options) {
  PlanReference reference = document.reference();
  const ProblemReference named = reference.problem;
  const bool apart = !options.problem.empty();
  if (reference.embedded && !apart) {
    if (!options.read.cluster.empty()) {
      throw RequestError(
          "the plan holds its own problem and devices; for another cluster give the problem too");
    }
    return problem_of_plan(std::move(reference), path);
  }
  ProblemFile file =
      problem_of_plan(std::move(reference), path,
                      apart ? std::optional(options.problem) : std::nullopt, options.read);
  if (!apart) {
    require_unchanged({"/problem/digest", file.file, named.digest, file.digest, "problem"}, path);
  }
  if (options.read.cluster.empty()) {
    require_unchanged({"/problem/cluster/digest", named.cluster_path, named.cluster_digest,
                       file.cluster_digest, "cluster"},
                      path);
  }
  return file;
}

// Whether a reader of the plan could find the problem as it was planned.
bool leads_to(const ProblemReference& reference, const Problem& problem) {
  const auto& ops = problem.draft().ops;
  return !reference.path.empty() && reference.path != "-" && reference.cluster_path != "-" &&
         std::none_of(ops.begin(), ops.end(), [](const Op& op) { return op.pinned_to.valid(); });
}

}  // namespace

std::vector<Violation> OpenedPlan::violations() const {
  std::vector<Violation> all = verify(problem, plan());
  const std::vector<Violation> stated =
      verify(Statement{file.status, file.stated_bound, file.stated_gap}, plan().value);
  all.insert(all.end(), stated.begin(), stated.end());
  return all;
}

std::string_view library_version() {
  return PLACEWRIGHT_VERSION;
}

Problem open_problem(const std::string& path, const ReadOptions& options) {
  return build_problem(read_problem(path, options));
}

Problem read_problem_text(std::string_view text, const std::string& origin,
                          const ReadOptions& options) {
  return build_problem(parse_problem(text, origin, options));
}

void save_problem(const std::string& path, const Problem& problem) {
  write_whole(path, write_problem(problem.draft()));
}

std::vector<PlannerEntry> available_planners() {
  return planning_registry().entries();
}

PlanOutcome solve(const Problem& problem, const PlanRequest& request, const std::atomic<bool>* stop,
                  const Control::Observer& observer) {
  PlanOutcome outcome = make_plan(problem, planning_registry(), request, stop, observer);
  if (!outcome.fault.empty()) throw std::runtime_error(outcome.fault);
  return outcome;
}

std::optional<Plan> plan_for(const Problem& problem, const Placement& placement) {
  if (placement.size() != problem.op_count()) {
    throw std::invalid_argument(fmt::format("the placement has {} ops, the problem {}",
                                            placement.size(), problem.op_count()));
  }
  for (const OpId op : problem.ops()) {
    const DeviceId device = placement[op];
    if (!device.valid() || device.index() >= problem.device_count() ||
        !problem.allowed(op, device)) {
      throw std::invalid_argument(
          fmt::format("op '{}' has no device that may run it", problem.op(op).name));
    }
  }
  return plan_of_placement(problem, placement);
}

PlanFile plan_file_of(const PlanOutcome& outcome) {
  if (!outcome.answer.plan) throw std::invalid_argument("the outcome holds no plan to save");
  PlanFile file;
  file.plan = *outcome.answer.plan;
  file.certificate = outcome.answer.certificate;
  file.status = outcome.answer.status();
  file.planner = outcome.planner;
  for (const Option& option : outcome.settings.options()) {
    file.settings[option.name] = text_of(outcome.settings.value(option.name));
  }
  if (outcome.coarsening) file.settings["coarsen"] = name_of(outcome.coarsening->method);
  file.seed = outcome.seed;
  file.seconds = outcome.seconds;
  return file;
}

void save_plan(const std::string& path, const Problem& problem, const PlanOutcome& outcome,
               const SavePlanOptions& options) {
  PlanFile file = plan_file_of(outcome);
  file.problem = options.problem;
  const bool embed = options.embed || !leads_to(options.problem, problem);
  write_whole(path, write_plan(problem, file, {.embed = embed, .path = path}));
}

OpenedPlan open_plan(const std::string& path, const OpenPlanOptions& options) {
  const PlanDocument document(read_whole(path), path);
  ProblemFile problem_file = problem_for_plan(document, path, options);
  if (options.change) options.change(problem_file.draft);
  const std::vector<std::string> op_ids = std::move(problem_file.op_ids);
  std::vector<std::string> warnings = std::move(problem_file.warnings);
  Problem problem = build_problem(std::move(problem_file));
  PlanFile file = read_whole_plan(document, path, problem, op_ids);
  file.warnings.insert(file.warnings.begin(), warnings.begin(), warnings.end());
  return {std::move(problem), std::move(file)};
}

PlanFile open_plan_of(const Problem& problem, const std::string& path,
                      std::span<const std::string> op_ids) {
  return read_whole_plan(PlanDocument(read_whole(path), path), path, problem, op_ids);
}

}  // namespace placewright
