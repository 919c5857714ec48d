#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/budget_options.h"
#include "cli/choice_option.h"
#include "cli/device_options.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/profile_summary.h"
#include "cli/status_line.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "placewright/placewright.h"
#include "tuning/tuner.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright tune inceptionv3.xml --device cpu:0 --device cpu:1 -o plan.json\n"
    "  placewright tune resnet50.xml --objective throughput --rounds 3 --corrected resnet.json\n"
    "\n"
    "Each round plans, runs the plan and corrects the costs by what its segments took. It ends\n"
    "when predicted and measured agree within 5 %, when the same plan comes again, or after\n"
    "--rounds. The best measured plan is kept.";

struct TuneOptions {
  std::vector<std::string> models;
  DeviceOptions devices;
  ShapeOptions shapes;
  BudgetOptions budget;
  OutputOptions output;
  std::optional<Objective> objective;
  std::string planner = "auto";
  std::size_t rounds = 5;
  std::size_t repeat = 20;
  std::string path;
  std::string corrected;
};

ProfileRequest profile_request(const TuneOptions& options) {
  if (options.objective == Objective::call_latency) {
    throw UsageError("--objective: plans for call-latency cannot be run");
  }
  ProfileRequest request;
  request.files = options.shapes.files(options.models);
  request.targets = options.devices.targets(backend_of_models(options.models));
  request.measure.repeat = options.repeat;
  return request;
}

void print_text(const Tuning& tuning) {
  TextTable table({{"round", Align::right},
                   {"planner"},
                   {"predicted", Align::right},
                   {"measured", Align::right},
                   {"prediction is off by", Align::right},
                   {"spread", Align::right},
                   {"segments", Align::right},
                   {"outputs"},
                   {""}});
  for (std::size_t i = 0; i < tuning.rounds.size(); ++i) {
    const TuningRound& round = tuning.rounds[i];
    const TimeUnit unit = round.problem.unit();
    table.add({fmt::format("{}", i + 1), round.outcome.planner, value_text(round.predicted(), unit),
               fmt::format("{}{}", value_text(round.measured(), unit),
                           round.valid() ? "" : ", disturbed"),
               round.valid() ? fmt::format("{:+.1f} %", 100 * round.error()) : "-",
               fmt::format("{:.1f} %", 100 * round.result.value.spread()),
               fmt::format("{}", round.result.segments.size()),
               round.result.outputs.equal() ? "equal" : "NOT equal",
               &round == tuning.best() ? "best" : ""});
  }
  fmt::print("{}\n{}\n{}\n", profile_text(tuning.profile), table.text(), tuning.ending);
}

void print_document(const Tuning& tuning) {
  Json document = {{"profile", profile_json(tuning.profile)},
                   {"ending", tuning.ending},
                   {"best", nullptr},
                   {"rounds", Json::array()}};
  for (std::size_t i = 0; i < tuning.rounds.size(); ++i) {
    const TuningRound& round = tuning.rounds[i];
    if (&round == tuning.best()) document["best"] = i + 1;
    document["rounds"].push_back({{"planner", round.outcome.planner},
                                  {"predicted", round.predicted()},
                                  {"measured", finite_or_null(round.measured())},
                                  {"valid", round.valid()},
                                  {"spread", round.result.value.spread()},
                                  {"kept", round.result.value.kept},
                                  {"rejected", round.result.value.rejected},
                                  {"segments", round.result.segments.size()},
                                  {"outputs_equal", round.result.outputs.equal()}});
  }
  print_json(document);
}

std::optional<Tuning> tuned(const TuneOptions& options) {
  TuneRequest request{.profile = profile_request(options),
                      .objective = options.objective,
                      .plan = {.planner = options.planner, .budget = options.budget.budget()},
                      .rounds = options.rounds};
  const Interruption interruption;
  StatusLine status(!options.output.quiet);
  request.stop = interruption.flag();
  request.progress = [&](const std::string& what) { status.show(what); };
  return tune(std::move(request));
}

ExitCode tune_models(const TuneOptions& options) {
  const std::optional<Tuning> tuning = tuned(options);
  if (!tuning) {
    fmt::print(stderr, "placewright: interrupted, nothing is written\n");
    return ExitCode::no;
  }
  if (options.output.json) {
    print_document(*tuning);
  } else if (!options.output.quiet) {
    print_text(*tuning);
  }
  for (const std::string& doubt : tuning->profile.doubts) {
    options.output.warn({"not valid: " + doubt});
  }
  if (!options.corrected.empty() && !tuning->rounds.empty()) {
    // The costs as they are after the last round.
    write_whole(options.corrected, write_problem(tuning->rounds.back().corrected_draft()));
  }
  const TuningRound* best = tuning->best();
  if (best == nullptr) {
    fmt::print(stderr,
               "placewright: no round has a valid measurement, so no plan is kept: stop other "
               "programs, or measure longer with '--repeat {}'\n",
               5 * options.repeat);
    return ExitCode::no;
  }
  if (!options.path.empty()) {
    save_plan(options.path, best->problem, best->outcome);
  }
  return ExitCode::success;
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "tune", "Profile, plan, run, correct the costs by what was measured, and plan again");
  const auto options = std::make_shared<TuneOptions>();
  options->budget.time_limit = "3s";
  verb->add_option("models", options->models, "Models that a backend reads")
      ->required()
      ->type_name("FILE");
  options->devices.add_to(*verb);
  options->shapes.add_to(*verb);
  options->budget.add_to(*verb, BudgetOptions::Start::none);
  add_choice(*verb, "--objective", options->objective,
             "What is minimised; default: latency, of several models total-completion");
  verb->add_option("--planner", options->planner, "The planner; see 'placewright planners'")
      ->capture_default_str()
      ->type_name("NAME");
  add_number(*verb, "--rounds", options->rounds, {1, 1000}, "The most plans that are run");
  add_number(*verb, "--repeat", options->repeat, {1, 1000000},
             "Runs of each measurement that count");
  options->output.add_to(*verb);
  verb->add_option("-o,--output", options->path, "Write the best measured plan here")
      ->type_name("FILE")
      ->group("Output");
  verb->add_option("--corrected", options->corrected, "Write the problem with corrected costs here")
      ->type_name("FILE")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return tune_models(*options); }; });
}

}  // namespace placewright::cli
