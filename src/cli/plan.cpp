#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/budget_options.h"
#include "cli/coarsen_options.h"
#include "cli/device_use.h"
#include "cli/front_end.h"
#include "cli/interruption.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/plan_summary.h"
#include "cli/problem_options.h"
#include "cli/progress_line.h"
#include "cli/repeated_option.h"
#include "cli/terminal.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/service.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright plan examples/moirai/GoogLeNet.json -o plan.json\n"
    "  placewright plan model.onnx -o plan.json                 measured here, then planned\n"
    "  placewright plan model.onnx --cluster devices.json       estimated for those devices\n"
    "  placewright plan model.json --cluster devices.json --objective latency --time-limit 1m\n"
    "  placewright plan graph.json --planner random --option samples=1000 --seed 7 --json\n"
    "  placewright plan bert.json resnet.json --cluster devices.json --objective "
    "total-completion\n"
    "  placewright plan graph.json --coarsen fusion --memory peak -o plan.json\n"
    "  placewright plan cluster.json               a training step; see import --format sailor\n"
    "  placewright plan graph.json --start plan.json --pin conv1=gpu0 -o better.json\n"
    "\n"
    "Ctrl-C ends the search and gives the best plan so far.";

struct PlanVerbOptions {
  ProblemOptions problem;
  BudgetOptions budget;
  CoarseningOptions coarsening;
  OutputOptions output;
  std::string planner = "auto";
  std::vector<std::string> planner_options;  // NAME=VALUE
  std::string path;
  bool embed = false;
};

std::vector<std::pair<std::string, std::string>> split_options(
    const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& text : texts) {
    const std::size_t split = text.find('=');
    if (split == std::string::npos) {
      throw UsageError(fmt::format("--option: '{}' is not of the form NAME=VALUE", text));
    }
    options.emplace_back(text.substr(0, split), text.substr(split + 1));
  }
  return options;
}

ExitCode exit_code(const PlanOutcome& outcome) {
  if (!outcome.fault.empty()) return ExitCode::fault;
  return outcome.answer.plan ? ExitCode::success : ExitCode::no;
}

PlanOutcome search(const PlanVerbOptions& options, const Problem& problem,
                   const PlanRequest& request) {
  const Interruption interruption;
  ProgressLine progress(!options.output.quiet, problem.unit());
  const Registry registry = with_front_end(planning_registry(), front_end(interruption.flag()));
  return make_plan(problem, registry, request, interruption.flag(), progress.observer());
}

void print(const OutputOptions& output, const Problem& problem, const PlanOutcome& outcome) {
  if (output.json) {
    print_json(outcome_json(problem, outcome));
  } else if (!outcome.answer.plan) {
    tell(fmt::format("placewright: {}\n", printable(no_plan_text(outcome))));
  } else if (!output.quiet) {
    fmt::print("{}", outcome_text(problem, outcome, output.verbose));
  }
}

ExitCode plan(const CLI::App& verb, const PlanVerbOptions& options) {
  options.problem.check();
  PlanRequest request;
  request.planner = options.planner;
  request.options = split_options(options.planner_options);
  request.budget = options.budget.budget();
  request.coarsening = options.coarsening.options();
  if (const auto done = plan_training_problem(verb, options.problem.path, request.budget.seconds,
                                              options.path, options.output)) {
    return *done;
  }

  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  const ProblemReference reference{.path = options.problem.path,
                                   .digest = file.digest,
                                   .format = options.problem.format,
                                   .cluster_path = options.problem.cluster,
                                   .cluster_digest = file.cluster_digest};
  const std::vector<std::string> op_ids = file.op_ids;
  const Problem problem = build_problem(std::move(file));
  const std::optional<Plan> start = start_plan(options.budget.start, problem, op_ids);
  if (start) request.start = &*start;

  const PlanOutcome outcome = search(options, problem, request);
  // With "-" the plan itself has the standard output. The answer comes first: it is not lost when
  // the file cannot be written.
  if (options.path != "-" || !outcome.answer.plan) print(options.output, problem, outcome);
  if (outcome.answer.plan && !options.path.empty()) {
    // One path cannot lead to a problem of several files, a model's not to its measured times, and
    // no file says what was forbidden here.
    const bool embed = options.embed || !options.problem.more.empty() ||
                       !options.problem.forbids.empty() || options.problem.names_models();
    save_plan(options.path, problem, outcome, {.problem = reference, .embed = embed});
  }
  return exit_code(outcome);
}

}  // namespace

void add_plan(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("plan", "Decide which op runs where and when");
  const auto options = std::make_shared<PlanVerbOptions>();
  options->problem.add_argument_to(*verb);
  options->budget.add_to(*verb);
  options->coarsening.add_to(*verb);
  verb->add_option("--planner", options->planner,
                   "Use this planner; 'placewright planners' lists them")
      ->capture_default_str()
      ->type_name("NAME");
  add_repeated(*verb, "--option", options->planner_options, "NAME=VALUE",
               "Set an option of the planner; repeatable");
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path,
              "Write the plan to this file; - is standard output");
  verb->add_flag("--embed", options->embed, "Put the problem into the plan file")->group("Output");
  verb->footer(kExamples);
  verb->callback(
      [&action, verb, options] { action = [verb, options] { return plan(*verb, *options); }; });
}

}  // namespace placewright::cli
