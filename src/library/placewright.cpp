// The public interface, on top of formats/, planning/ and verify/.

#include "placewright/placewright.h"

#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "evaluate/placement_plan.h"
#include "formats/input_error.h"
#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

ReadOptions read_options(const OpenOptions& options) {
  ReadOptions result;
  if (!options.format.empty()) {
    result.format = format_named(options.format);
    if (!result.format) {
      throw std::invalid_argument(fmt::format("no format is called '{}'", options.format));
    }
  }
  result.objective = options.objective;
  if (!options.cluster.empty()) result.cluster = options.cluster;
  return result;
}

PlanRequest request_of(const Task& task) {
  PlanRequest request;
  request.planner = task.planner;
  request.options.assign(task.options.begin(), task.options.end());
  request.budget = {task.seconds, task.steps, task.threads, task.seed};
  request.start = task.start;
  return request;
}

}  // namespace

std::string_view library_version() {
  return PLACEWRIGHT_VERSION;
}

Problem open_problem(const std::string& path, const OpenOptions& options) {
  return build_problem(read_problem(path, read_options(options)));
}

Problem read_problem_text(std::string_view text, const std::string& origin,
                          const OpenOptions& options) {
  return build_problem(parse_problem(text, origin, read_options(options)));
}

void save_problem(const std::string& path, const Problem& problem) {
  write_whole(path, write_problem(problem.draft()));
}

std::vector<PlannerDescription> available_planners() {
  std::vector<PlannerDescription> planners;
  const Registry registry = planning_registry();
  for (const PlannerEntry& entry : registry.entries()) {
    PlannerDescription planner{
        entry.name, entry.summary, entry.objectives, entry.strength == Strength::exact, {}};
    for (const Option& option : entry.options) planner.options.emplace(option.name, option.text);
    planners.push_back(std::move(planner));
  }
  return planners;
}

double Result::gap() const {
  return plan ? placewright::gap(plan->value, certificate.lower_bound) : kInfinity;
}

Result solve(const Problem& problem, const Task& task) {
  Control::Observer observer;
  if (task.on_milestone) {
    observer = [&task](const Progress& progress) {
      task.on_milestone({progress.planner, progress.seconds, progress.value, progress.lower_bound});
    };
  }
  PlanOutcome outcome =
      make_plan(problem, planning_registry(), request_of(task), task.stop, observer);
  if (!outcome.fault.empty()) throw std::runtime_error(outcome.fault);
  Result result;
  result.status = outcome.answer.status();
  result.plan = std::move(outcome.answer.plan);
  result.certificate = std::move(outcome.answer.certificate);
  result.reason = std::move(outcome.answer.reason);
  result.planner = std::move(outcome.planner);
  result.seconds = outcome.seconds;
  result.seed = task.seed;
  return result;
}

std::vector<Finding> check_plan(const Problem& problem, const Plan& plan) {
  std::vector<Finding> findings;
  for (Violation& violation : verify(problem, plan)) {
    findings.push_back({std::string(name_of(violation.code)), std::move(violation.message)});
  }
  return findings;
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

void save_result(const std::string& path, const Problem& problem, const Result& result) {
  if (!result.plan) throw std::invalid_argument("the result holds no plan to save");
  PlanFile file;
  file.plan = *result.plan;
  file.certificate = result.certificate;
  file.status = result.status;
  file.planner = result.planner;
  file.seed = result.seed;
  file.seconds = result.seconds;
  write_whole(path, write_plan(problem, file, {.embed = true, .path = path}));
}

OpenedPlan open_plan(const std::string& path) {
  const std::string text = read_whole(path);
  const PlanReference reference = peek_plan(text, path);
  const ProblemFile file = problem_of_plan(reference, path, std::nullopt);
  if (!reference.embedded && !reference.problem.digest.empty() &&
      reference.problem.digest != file.digest) {
    throw InputError(input_name(path), "/problem/digest",
                     fmt::format("'{}' has changed since the plan was made", file.file));
  }
  Problem problem = build_problem(file);
  PlanFile plan_file = parse_plan(text, input_name(path), problem, file.op_ids);
  if (!plan_file.has_plan()) throw InputError(input_name(path), "", "holds no plan");
  if (!std::isfinite(plan_file.plan.value)) {
    plan_file.plan.value = verified_value(problem, plan_file.plan);
  }
  return {std::move(problem), std::move(plan_file.plan)};
}

}  // namespace placewright
