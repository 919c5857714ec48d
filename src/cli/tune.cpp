#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/budget_options.h"
#include "cli/device_options.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/plan_summary.h"
#include "cli/problem_options.h"
#include "cli/profile_summary.h"
#include "cli/status_line.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "profiling/profile.h"
#include "running/execution.h"
#include "tuning/correction.h"

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

constexpr double kAgreement = 0.05;

struct TuneOptions {
  std::vector<std::string> models;
  DeviceOptions devices;
  ShapeOptions shapes;
  BudgetOptions budget;
  OutputOptions output;
  std::string objective;
  std::string planner = "auto";
  std::size_t rounds = 5;
  std::size_t repeat = 20;
  std::string path;
  std::string corrected;
};

struct Round {
  Problem problem;
  PlanOutcome outcome;
  RunResult result;

  [[nodiscard]] double predicted() const { return outcome.value(); }
  [[nodiscard]] double measured() const { return result.value.median; }
  [[nodiscard]] bool valid() const { return result.value.valid(); }
  // Relative to what was measured.
  [[nodiscard]] double error() const { return predicted() / measured() - 1; }
};

struct Tuning {
  Profile profile;
  std::vector<Round> rounds;
  std::string ending;
  bool interrupted = false;

  // The fastest of the rounds whose measurement is valid and whose outputs are right.
  [[nodiscard]] const Round* best() const {
    const Round* best = nullptr;
    for (const Round& round : rounds) {
      if (!round.valid() || !round.result.outputs.equal()) continue;
      if (best == nullptr || round.measured() < best->measured()) best = &round;
    }
    return best;
  }
};

ProfileRequest profile_request(const TuneOptions& options, const Runtime& runtime) {
  (void)options.shapes.shapes();
  if (options.models.size() > 1 && !options.shapes.texts.empty()) {
    throw UsageError("--shape: of several models it is not clear which one is meant");
  }
  if (!options.objective.empty() &&
      objective_for_flag(options.objective) == Objective::call_latency) {
    throw UsageError("--objective: plans for call-latency cannot be run");
  }
  ProfileRequest request;
  for (const std::string& path : options.models) {
    request.files.push_back({path, options.shapes.texts});
  }
  request.targets = options.devices.targets(runtime.devices());
  request.measure.repeat = options.repeat;
  return request;
}

std::vector<std::optional<double>> segment_times(const RunResult& result) {
  std::vector<std::optional<double>> times;
  for (const Measured& time : result.segment_times) {
    times.push_back(time.kept > 0 ? std::optional(time.median) : std::nullopt);
  }
  return times;
}

class Tuner {
 public:
  Tuner(const TuneOptions& options, const Runtime& runtime, const std::atomic<bool>* stop,
        StatusLine& status)
      : options_(options), runtime_(runtime), stop_(stop), status_(status) {}

  std::optional<Tuning> run() {
    ProfileRequest request = profile_request(options_, runtime_);
    request.measure.stop = stop_;
    request.measure.progress = [this](const std::string& what) { status_.show(what); };
    auto profile = profile_models(runtime_, request);
    if (!profile) return std::nullopt;
    Tuning tuning;
    tuning.profile = std::move(*profile);
    ProblemDraft draft = tuning.profile.draft;
    if (!options_.objective.empty()) {
      draft = with_objective(std::move(draft), objective_for_flag(options_.objective));
    }
    while (tuning.rounds.size() < options_.rounds && !stop_->load()) {
      auto round = next_round(std::move(draft), tuning);
      if (!round) return tuning;
      tuning.rounds.push_back(std::move(*round));
      if (ended(tuning)) return tuning;
      const Round& last = tuning.rounds.back();
      draft = corrected(last.problem, last.result.segments, segment_times(last.result));
    }
    tuning.interrupted = stop_->load();
    tuning.ending = tuning.interrupted ? "interrupted" : "all rounds are done";
    return tuning;
  }

 private:
  std::optional<Round> next_round(ProblemDraft draft, Tuning& tuning) {
    const std::size_t number = tuning.rounds.size() + 1;
    Round round{Problem(std::move(draft)), {}, {}};
    PlanRequest request;
    request.planner = options_.planner;
    request.budget = options_.budget.budget();
    status_.show(fmt::format("round {}: planning", number));
    round.outcome = make_plan(round.problem, planning_registry(), request, stop_);
    if (!round.outcome.answer.plan) {
      tuning.ending = no_plan_text(round.outcome);
      return std::nullopt;
    }
    RunOptions run;
    run.repeat = static_cast<int>(options_.repeat);
    run.stop = stop_;
    run.progress = [&](double done) {
      status_.show(fmt::format("round {}: running {:.0f} %", number, 100 * done));
    };
    const auto models = models_of(round.problem, runtime_);
    round.result = run_plan(round.problem, *round.outcome.answer.plan, models, runtime_, run);
    if (round.result.interrupted) {
      tuning.interrupted = true;
      tuning.ending = "interrupted";
      return std::nullopt;
    }
    return round;
  }

  static bool ended(Tuning& tuning) {
    const Round& last = tuning.rounds.back();
    if (last.valid() && std::abs(last.error()) <= kAgreement) {
      tuning.ending = fmt::format("predicted and measured agree within {:.0f} %", 100 * kAgreement);
      return true;
    }
    const auto same = [&](const Round& round) {
      return &round != &last &&
             round.outcome.answer.plan->placement == last.outcome.answer.plan->placement;
    };
    // A plan that comes again after a correction: once more its costs may have changed.
    if (std::count_if(tuning.rounds.begin(), tuning.rounds.end(), same) >= 2) {
      tuning.ending = "the same placement comes again";
      return true;
    }
    return false;
  }

  const TuneOptions& options_;
  const Runtime& runtime_;
  const std::atomic<bool>* stop_;
  StatusLine& status_;
};

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
    const Round& round = tuning.rounds[i];
    const TimeUnit unit = round.problem.unit();
    table.add({fmt::format("{}", i + 1), round.outcome.planner, value_text(round.predicted(), unit),
               round.valid() ? value_text(round.measured(), unit) : "not valid",
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
    const Round& round = tuning.rounds[i];
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

// The costs as they are after the last round.
std::string corrected_problem(const Tuning& tuning) {
  const Round& last = tuning.rounds.back();
  return write_problem(corrected(last.problem, last.result.segments, segment_times(last.result)));
}

ExitCode tune(const TuneOptions& options) {
  const Runtime& runtime = openvino_runtime();
  std::optional<Tuning> tuning;
  {
    const Interruption interruption;
    StatusLine status(!options.output.quiet);
    tuning = Tuner(options, runtime, interruption.flag(), status).run();
  }
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
    write_whole(options.corrected, corrected_problem(*tuning));
  }
  const Round* best = tuning->best();
  if (best == nullptr) {
    fmt::print(stderr, "placewright: no round has a valid measurement, so no plan is kept\n");
    return ExitCode::no;
  }
  if (!options.path.empty()) {
    save_plan(options.path, best->problem, best->outcome, options.budget.budget(), {}, true);
  }
  return ExitCode::success;
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "tune", "Profile, plan, run, correct the costs by what was measured, and plan again");
  const auto options = std::make_shared<TuneOptions>();
  options->budget.time_limit = "3s";
  verb->add_option("models", options->models, "Models that OpenVINO reads")
      ->required()
      ->type_name("FILE");
  options->devices.add_to(*verb);
  options->shapes.add_to(*verb);
  options->budget.add_to(*verb, BudgetOptions::Start::none);
  verb->add_option("--objective", options->objective,
                   "throughput, latency or total-completion; default: latency, of several models "
                   "total-completion")
      ->type_name("NAME");
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
  verb->callback([&action, options] { action = [options] { return tune(*options); }; });
}

}  // namespace placewright::cli
