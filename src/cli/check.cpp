#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/plan_rows.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright check plan.json\n"
    "  placewright check plan.json --problem examples/moirai/GoogLeNet.json --json\n"
    "  placewright check expert.json --problem graph.json      an expert split\n"
    "\n"
    "The exit code is 1 if the plan is not valid.";

struct CheckOptions {
  PlanOptions plan;
  OutputOptions output;
};

void print_text(const Problem& problem, const Plan& plan,
                const std::vector<Violation>& violations) {
  if (violations.empty()) {
    fmt::print("{}: {} {}\n", coloured("valid", Colour::green), name_of(problem.objective()),
               value_text(plan.value, problem.unit()));
    return;
  }
  fmt::print("{}: {} violation{}\n", coloured("not valid", Colour::red), violations.size(),
             violations.size() == 1 ? "" : "s");
  for (const Violation& violation : violations) {
    fmt::print("  {}: {}\n", name_of(violation.code), printable(violation.message));
  }
}

Json violation_json(const Problem& problem, const Violation& violation) {
  Json ops = Json::array();
  for (const OpId op : violation.ops) ops.push_back(problem.op(op).name);
  return {{"code", name_of(violation.code)},
          {"message", violation.message},
          {"ops", std::move(ops)},
          {"devices", device_names(problem, violation.devices)}};
}

void print_document(const Problem& problem, const Plan& plan,
                    const std::vector<Violation>& violations) {
  Json document = {{"valid", violations.empty()},
                   {"objective", name_of(problem.objective())},
                   {"value", finite_or_null(plan.value)},
                   {"unit", name_of(problem.unit())},
                   {"violations", Json::array()}};
  for (const Violation& violation : violations) {
    document["violations"].push_back(violation_json(problem, violation));
  }
  print_json(document);
}

ExitCode check(const CLI::App& verb, const CheckOptions& options) {
  options.plan.problem.check();
  if (const auto done = check_training(verb, options.plan.path, options.output)) return *done;
  const OpenedPlan loaded = options.plan.read(options.output);
  const auto violations = loaded.violations();
  if (options.output.json) {
    print_document(loaded.problem, loaded.plan(), violations);
  } else if (!options.output.quiet) {
    print_text(loaded.problem, loaded.plan(), violations);
  }
  return violations.empty() ? ExitCode::success : ExitCode::no;
}

}  // namespace

void add_check(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("check", "Check that a plan is valid, and compute its value");
  const auto options = std::make_shared<CheckOptions>();
  options->plan.add_to(*verb);
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback(
      [&action, verb, options] { action = [verb, options] { return check(*verb, *options); }; });
}

}  // namespace placewright::cli
