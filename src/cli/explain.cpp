#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/conflict.h"
#include "analysis/cuts.h"
#include "analysis/limits.h"
#include "analysis/more_of.h"
#include "analysis/op_moves.h"
#include "backends/registry.h"
#include "cli/budget_options.h"
#include "cli/explanation_text.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/suggestion.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright explain plan.json                  what limits the plan, and what would help\n"
    "  placewright explain plan.json --op conv1       why is this op here, what would moving cost\n"
    "  placewright explain problem.json               why does nothing fit\n"
    "\n"
    "The exit code is 1 if the problem is infeasible or the plan is not valid.";

// Re-plans for "what more would bring".
constexpr std::size_t kResources = 7;

struct ExplainOptions {
  PlanOptions plan;
  BudgetOptions budget{.time_limit = "2s"};
  OutputOptions output;
  std::string op;
  std::string planner = "auto";
  double step = 10;  // per cent
};

OpId op_called(const Problem& problem, const std::string& name) {
  if (const auto op = problem.find_op(name)) return *op;
  std::vector<std::string> names;
  for (const OpId op : problem.ops()) names.push_back(problem.op(op).name);
  throw UsageError(fmt::format("--op: no op is called '{}'{}", name, did_you_mean(name, names)));
}

ExitCode explain_op(const ExplainOptions& options, const OpenedPlan& loaded) {
  const OpId op = op_called(loaded.problem, options.op);
  OpExplanation explanation{op, moves_of_op(loaded.problem, loaded.plan(), op), {}};
  explanation.holds = holds_of_op(loaded.problem, loaded.plan(), op, explanation.moves);
  if (options.output.json) {
    print_json(op_json(loaded.problem, loaded.plan(), explanation));
  } else if (!options.output.quiet) {
    fmt::print("{}", op_text(loaded.problem, loaded.plan(), explanation));
  }
  return ExitCode::success;
}

ExitCode explain_plan(const ExplainOptions& options, const OpenedPlan& loaded) {
  if (!is_valid(loaded)) return ExitCode::no;
  if (!options.op.empty()) return explain_op(options, loaded);
  PlanExplanation explanation;
  explanation.path = critical_path(loaded.problem, loaded.plan());
  if (loaded.problem.objective() == Objective::throughput) {
    explanation.stages = fullest_stages(loaded.problem, loaded.plan());
    explanation.turns = limiting_turns(loaded.problem, loaded.plan());
  }
  explanation.cuts = cuts_of(loaded.problem, loaded.plan());
  PlanRequest request{.planner = options.planner, .budget = options.budget.budget()};
  {
    const Interruption interruption;
    explanation.sensitivity =
        what_more_brings(loaded.problem, loaded.plan(), planning_registry(), request,
                         scarce_assets(loaded.problem, loaded.plan(), kResources),
                         options.step / 100, interruption.flag());
  }
  if (options.output.json) {
    print_json(plan_json(loaded.problem, loaded.plan(), explanation));
  } else if (!options.output.quiet) {
    fmt::print("{}", plan_text(loaded.problem, loaded.plan(), explanation, options.output.verbose));
  }
  return ExitCode::success;
}

ExitCode explain_problem(const ExplainOptions& options) {
  if (!options.op.empty()) throw UsageError("--op needs a plan, and this is a problem");
  ProblemOptions given = options.plan.problem;
  given.path = options.plan.path;
  ProblemFile file = given.read(options.output);
  options.output.warn(file.warnings);
  const Problem problem = build_problem(std::move(file));
  const Registry registry = planning_registry();
  // Half of the time for the conflict, half for the memory.
  Budget budget = options.budget.budget();
  budget.seconds /= 2;
  ProblemExplanation explanation;
  FeasibilityOracle oracle(registry, budget);
  explanation.conflict = find_conflict(problem, oracle);
  if (explanation.conflict.verdict == Verdict::infeasible) {
    FeasibilityOracle memory_oracle(registry, budget);
    explanation.memory = least_memory(problem, memory_oracle);
  }
  if (options.output.json) {
    print_json(problem_json(problem, explanation));
  } else if (!options.output.quiet) {
    fmt::print("{}", problem_text(problem, explanation));
  }
  return explanation.conflict.verdict == Verdict::feasible ? ExitCode::success : ExitCode::no;
}

ExitCode explain(const CLI::App& verb, const ExplainOptions& options) {
  if (const auto done =
          explain_training(verb, options.plan.path, options.step / 100, options.output)) {
    return *done;
  }
  const std::string& path = options.plan.path;
  // An expert split is not a plan file of our format; --problem says that it is a plan. Standard
  // input and pipes can be read only once, and so are taken for one.
  std::error_code unknown;
  const bool is_plan =
      !options.plan.problem.path.empty() || path == "-" || std::filesystem::is_fifo(path, unknown);
  if (!is_plan && (backend_reading(path) != nullptr ||
                   kind_of_file(read_whole(path), input_name(path)) == FileKind::problem)) {
    return explain_problem(options);
  }
  return explain_plan(options, options.plan.read(options.output));
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "explain", "Explain what limits a plan, why an op is where it is, or why nothing fits");
  const auto options = std::make_shared<ExplainOptions>();
  verb->add_option(
          "file", options->plan.path,
          "A plan, or a problem or model that does not fit; - reads a plan from standard input")
      ->required()
      ->type_name("FILE");
  options->plan.problem.add_option_to(*verb);
  options->budget.add_to(*verb, BudgetOptions::Start::none);
  verb->add_option("--op", options->op, "Explain this op instead of the plan")->type_name("NAME");
  verb->add_option("--planner", options->planner,
                   "Plan again with this planner when resources grow")
      ->capture_default_str()
      ->type_name("NAME");
  add_number(*verb, "--step", options->step, {0.001, 1e6}, "Add this many per cent of a resource");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback(
      [&action, options, verb] { action = [options, verb] { return explain(*verb, *options); }; });
}

}  // namespace placewright::cli
