#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/budget_options.h"
#include "cli/coarsen_options.h"
#include "cli/interruption.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/problem_options.h"
#include "cli/progress_line.h"
#include "cli/record_table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "problem/cost_source.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright compare examples/moirai/GoogLeNet.json\n"
    "  placewright compare graph.json --planners heft,etf --time-limit 1m --json";

struct CompareOptions {
  ProblemOptions problem;
  BudgetOptions budget;
  CoarseningOptions coarsening;
  OutputOptions output;
  std::vector<std::string> planners;
};

// The gap of one planner's plan to the best bound of all.
double gap_to(const PlanOutcome& outcome, const Certificate& bound) {
  return gap(outcome.value(), bound.lower_bound);
}

std::string status_cell(const PlanOutcome& outcome) {
  return outcome.fault.empty() ? std::string{name_of(outcome.answer.status())} : "fault";
}

double seconds_given(const Comparison& comparison, const PlanOutcome& outcome) {
  const auto found = comparison.seconds_given.find(outcome.planner);
  return found == comparison.seconds_given.end() ? 0 : found->second;
}

RecordTable<PlanOutcome> outcome_table(const Problem& problem, const Comparison& comparison) {
  return RecordTable<PlanOutcome>({
      {"planner", "planner", words(), [](const auto& outcome) { return outcome.planner; }},
      {"value", "value", time_in(problem.unit()), [](const auto& o) { return o.value(); }},
      {"gap", "gap", percent(), [&](const auto& o) { return gap_to(o, comparison.bound); }},
      {"lower_bound", kNoTitle, time_in(problem.unit()),
       [](const auto& outcome) { return outcome.answer.certificate.lower_bound; }},
      {"seconds", "time", duration(), [](const auto& outcome) { return outcome.seconds; }},
      {"seconds_given", "of", duration(),
       [&](const auto& outcome) { return seconds_given(comparison, outcome); }},
      {"status", "status", words(), status_cell},
  });
}

void print_text(const Problem& problem, const Comparison& comparison) {
  fmt::print("{}: {} on {} devices\n", printable(problem.name()), name_of(problem.objective()),
             problem.device_count());
  const std::string caution = caution_of(cost_source(problem.draft()));
  if (!caution.empty()) fmt::print("caution: {}\n", caution);
  fmt::print("\n{}\n", outcome_table(problem, comparison).text(comparison.outcomes));
  for (const PlanOutcome& outcome : comparison.outcomes) {
    if (!outcome.answer.plan) {
      fmt::print("{}: {}\n", outcome.planner, printable(outcome.answer.reason));
    }
  }
  fmt::print("best lower bound: {} ({})\n",
             value_text(comparison.bound.lower_bound, problem.unit()), comparison.bound.method);
}

void print_document(const Problem& problem, const Comparison& comparison) {
  Json document = {{"problem", problem.name()},
                   {"objective", name_of(problem.objective())},
                   {"unit", name_of(problem.unit())},
                   {"lower_bound", comparison.bound.lower_bound},
                   {"bound_method", comparison.bound.method},
                   {"planners", outcome_table(problem, comparison).json(comparison.outcomes)}};
  for (std::size_t i = 0; i < comparison.outcomes.size(); ++i) {
    const Answer& answer = comparison.outcomes[i].answer;
    if (!answer.plan) document["planners"][i]["reason"] = answer.reason;
  }
  print_json(document);
}

ExitCode exit_code(const Comparison& comparison) {
  const auto& outcomes = comparison.outcomes;
  const bool any_plan =
      std::any_of(outcomes.begin(), outcomes.end(),
                  [](const PlanOutcome& outcome) { return outcome.answer.plan.has_value(); });
  const bool any_fault = std::any_of(outcomes.begin(), outcomes.end(),
                                     [](const PlanOutcome& o) { return !o.fault.empty(); });
  return any_plan ? ExitCode::success : any_fault ? ExitCode::fault : ExitCode::no;
}

ExitCode compare_planners(const CompareOptions& options) {
  PlanRequest request;
  request.budget = options.budget.budget();
  request.coarsening = options.coarsening.options();
  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  const std::vector<std::string> op_ids = file.op_ids;
  const Problem problem = build_problem(std::move(file));
  const std::optional<Plan> start = start_plan(options.budget.start, problem, op_ids);
  if (start) request.start = &*start;

  Comparison comparison;
  {
    const Interruption interruption;
    ProgressLine progress(!options.output.quiet, problem.unit());
    comparison = compare(problem, planning_registry(), options.planners, request,
                         interruption.flag(), progress.observer());
  }
  if (comparison.outcomes.empty()) throw UsageError("no planner supports this problem");
  if (options.output.json) {
    print_document(problem, comparison);
  } else if (!options.output.quiet) {
    print_text(problem, comparison);
  }
  return exit_code(comparison);
}

}  // namespace

void add_compare(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("compare", "Run all planners that fit, side by side");
  const auto options = std::make_shared<CompareOptions>();
  options->problem.add_argument_to(*verb);
  options->budget.add_to(*verb);
  options->coarsening.add_to(*verb);
  options->output.add_to(*verb);
  verb->add_option("--planners", options->planners, "Run only these planners, separated by commas")
      ->delimiter(',')
      ->type_name("NAMES");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return compare_planners(*options); }; });
}

}  // namespace placewright::cli
