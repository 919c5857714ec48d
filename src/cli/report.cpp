#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "bounds/bounds.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/repeated_option.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/run_file.h"
#include "formats/text_file.h"
#include "planning/sizes.h"
#include "report/report_page.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright report plan.json -o report.html\n"
    "  placewright report heft.json exact.json -o report.html      two plans of one problem\n"
    "  placewright report plan.json --run run.json -o report.html  with what 'run -o' measured\n"
    "\n"
    "The page is one file. It opens from disk and loads nothing from the network. The exit code "
    "is\n"
    "1 if a plan is not valid.";

struct ReportOptions {
  std::vector<std::string> plans;
  std::vector<std::string> runs;
  ProblemOptions problem;
  bool quiet = false;
  std::string output;
};

OpenedPlan read_plan(const ReportOptions& options, const std::string& path) {
  const OutputOptions output{.quiet = options.quiet};
  const PlanOptions one{path, options.problem};
  return one.read(output);
}

// The planner's name; where several plans share it, the file's name as well.
std::vector<std::string> labels_of(const std::vector<OpenedPlan>& loaded,
                                   const std::vector<std::string>& paths) {
  const auto planner = [&](std::size_t i) {
    return loaded[i].file.planner.empty() ? input_name(paths[i]) : loaded[i].file.planner;
  };
  std::vector<std::string> labels;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    std::size_t sharing = 0;
    for (std::size_t j = 0; j < loaded.size(); ++j) sharing += planner(j) == planner(i) ? 1U : 0U;
    std::string label = planner(i);
    if (sharing > 1) {
      label += fmt::format(" ({})", std::filesystem::path(paths[i]).filename().string());
    }
    const std::string wanted = label;
    for (int again = 2; !taken.insert(label).second; ++again) {
      label = fmt::format("{} {}", wanted, again);
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

bool valid(const OpenedPlan& loaded, const std::string& path) {
  const auto violations = loaded.violations();
  if (violations.empty()) return true;
  tell(fmt::format("placewright: {}: the plan is not valid: {} ('placewright check' lists all)\n",
                   input_name(path), printable(violations.front().message)));
  return false;
}

// Plans for several objectives, or under other rules, share a page.
bool same_graph_and_devices(const Problem& one, const Problem& other) {
  ProblemDraft draft = one.draft();
  draft.objective = other.objective();
  draft.rules = other.rules();
  return draft == other.draft();
}

// What the page shows of a plan. An expert split, or a plan written by hand, comes without a bound.
ReportedPlan reported(OpenedPlan& loaded, const std::string& label) {
  PlanFile file = std::move(loaded.file);
  if (file.certificate.lower_bound <= 0) {
    file.certificate = best_lower_bound(loaded.problem);
    const double left = gap(file.plan.value, file.certificate.lower_bound);
    file.status = left <= kOptimalGap ? Status::optimal : Status::feasible;
  }
  return {label, std::move(file), &loaded.problem};
}

// Gives each run to the plan that was run. Throws InputError if there is none.
void add_runs(const ReportOptions& options, std::vector<ReportedPlan>& plans) {
  const OutputOptions output{.quiet = options.quiet};
  for (const std::string& path : options.runs) {
    RunFile run = parse_run(read_whole(path), input_name(path));
    output.warn(run.warnings);
    const auto plan = std::find_if(plans.begin(), plans.end(), [&](const ReportedPlan& candidate) {
      return !candidate.run && mismatch(run, *candidate.problem, candidate.file.plan).empty();
    });
    if (plan != plans.end()) {
      plan->run = std::move(run);
      continue;
    }
    const std::string reason = mismatch(run, *plans.front().problem, plans.front().file.plan);
    throw InputError(
        input_name(path), "",
        reason.empty() ? "two --run files belong to this plan"
        : plans.size() > 1
            ? fmt::format("this run belongs to none of these plans (the first plan: {})", reason)
            : fmt::format("this run does not belong to the plan: {}", reason));
  }
}

ExitCode write_report(const CLI::App& verb, const ReportOptions& options) {
  const OutputOptions output{.quiet = options.quiet};
  if (const auto done = report_training(verb, options.plans, options.output, output)) return *done;
  std::vector<OpenedPlan> loaded;
  for (const std::string& path : options.plans) {
    loaded.push_back(read_plan(options, path));
    if (!valid(loaded.back(), path)) return ExitCode::no;
    if (same_graph_and_devices(loaded.back().problem, loaded.front().problem)) continue;
    throw UsageError(fmt::format(
        "{} and {} are plans of different problems; a report shows plans of one problem",
        input_name(options.plans.front()), input_name(path)));
  }
  const std::vector<std::string> labels = labels_of(loaded, options.plans);
  std::vector<ReportedPlan> plans;
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    plans.push_back(reported(loaded[i], labels[i]));
  }
  add_runs(options, plans);
  const std::string page = report_page(plans);
  write_whole(options.output, page);
  if (!options.quiet && options.output != "-") {
    fmt::print("{}: {} plan{} of {} ops, {}\n", options.output, plans.size(),
               plans.size() == 1 ? "" : "s", loaded.front().problem.op_count(),
               size_text(static_cast<double>(page.size())));
  }
  return ExitCode::success;
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("report", "Write one HTML page about plans of one problem");
  const auto options = std::make_shared<ReportOptions>();
  verb->add_option("plans", options->plans, "The plan files; - is standard input")
      ->required()
      ->type_name("PLAN");
  options->problem.add_option_to(*verb);
  add_repeated(*verb, "--run", options->runs, "FILE",
               "A file that 'placewright run -o' wrote for one of the plans; repeatable");
  verb->add_flag("-q,--quiet", options->quiet, "Print no summary and no warnings")->group("Output");
  add_written(*verb, "-o,--output", options->output,
              "Write the page to this file; - is standard output")
      ->required();
  verb->footer(kExamples);
  verb->callback([&action, options, verb] {
    action = [options, verb] { return write_report(*verb, *options); };
  });
}

}  // namespace placewright::cli
