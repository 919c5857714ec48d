#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/budget_options.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/record_table.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/plan_rows.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "placewright/placewright.h"
#include "problem/cost_source.h"
#include "running/turns.h"
#include "tuning/tuner.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright tune inceptionv3.xml -o plan.json\n"
    "  placewright tune problem.json --objective throughput --rounds 3 --corrected better.json\n"
    "\n"
    "Each round plans, runs the plan, and corrects the costs by the measured times. The rounds "
    "end\n"
    "when prediction and measurement agree within 5 %, when the same placement has come three\n"
    "times, or after --rounds. Then the best plan and the uncut model take turns on the devices.\n"
    "'tune' keeps the plan only if it is faster.";

struct TuneOptions {
  ProblemOptions problem;
  BudgetOptions budget;
  OutputOptions output;
  std::string planner = "auto";
  std::size_t rounds = 5;
  int repeat = 20;
  std::string path;
  std::string corrected;
};

// "cpu:0, cpu:1"
std::string devices_text(const TuningRound& round) {
  std::set<DeviceId> used;
  for (const Segment& segment : round.result.segments) {
    used.insert(segment.devices.begin(), segment.devices.end());
  }
  const std::vector<DeviceId> devices(used.begin(), used.end());
  return fmt::format("{}", fmt::join(device_names(round.problem, devices), ", "));
}

// One sentence: what is kept, and whether planning was worth it.
std::string headline(const Tuning& tuning) {
  const TuningRound& best = *tuning.best();
  const bool several = best.problem.model_count() > 1;
  const char* uncut_text = several ? "the models one after the other" : "the model uncut";
  const char* other_text = several ? "the other plan" : "the plan that cuts it";
  const TuningRound* uncut = tuning.uncut();
  const auto text = [](const TuningRound& round) {
    return value_text(round.measured(), round.problem.unit());
  };
  if (!best.valid()) {
    return fmt::format("kept: {}, {}; the final measurement is not valid: {}",
                       best.uncut ? uncut_text : other_text, text(best),
                       doubt_of(best.result.value));
  }
  if (best.uncut) {
    const bool alone = std::ranges::all_of(tuning.finalists, &TuningRound::uncut);
    return fmt::format("kept: {} on {}, {}: {}", uncut_text, devices_text(best), text(best),
                       alone ? several ? "no round made another plan" : "no plan cuts it"
                             : fmt::format("{} is not faster", other_text));
  }
  if (uncut == nullptr) return fmt::format("kept: {}", text(best));
  return fmt::format("kept: {}, {:.3g} times as fast as {} ({})", text(best),
                     uncut->measured() / best.measured(), uncut_text, text(*uncut));
}

// Of the rounds, or of the finalists.
RecordTable<TuningRound> round_table(const Tuning& tuning, const std::vector<TuningRound>& rounds) {
  const TimeUnit unit = rounds.front().problem.unit();
  return RecordTable<TuningRound>({
      {kNoKey, &rounds == &tuning.finalists ? "final" : "round", count(),
       [&](const auto& round) { return &round - rounds.data() + 1; }},
      {"planner", kNoTitle, words(), [](const auto& round) { return round.outcome.planner; }},
      {kNoKey, "planner", words(),
       [](const auto& round) { return round.uncut ? "uncut" : round.outcome.planner; }},
      {"devices", "devices", words(), [](const auto& round) { return devices_text(round); }},
      {"uncut", kNoTitle, words(), [](const auto& round) { return round.uncut; }},
      {"predicted", "predicted", time_in(unit),
       [](const auto& round) { return round.predicted(); }},
      {"measured", "measured", time_in(unit), [](const auto& round) { return round.measured(); }},
      {"valid", "valid", words(), [](const auto& round) { return round.valid(); }},
      {kNoKey, "prediction is off by", scaled(100, "{:+.1f} %"),
       [](const auto& round) { return round.valid() ? Json(round.error()) : Json(); }},
      {"spread", "spread", percent(),
       [](const auto& round) { return round.result.value.spread(); }},
      {"kept", kNoTitle, count(), [](const auto& round) { return round.result.value.kept; }},
      {"rejected", kNoTitle, count(),
       [](const auto& round) { return round.result.value.rejected; }},
      {"segments", "segments", count(),
       [](const auto& round) { return round.result.segments.size(); }},
      {"outputs_equal", "outputs equal", words(),
       [](const auto& round) { return round.result.outputs.equal(); }},
      {kNoKey, "", words(),
       [&](const auto& round) {
         if (&round == tuning.best()) return "kept";
         return round.out ? "out" : "";
       }},
  });
}

// The backend with a hint alone, of a plan for throughput the time between two samples.
RecordTable<Baseline> hint_table(const Tuning& tuning) {
  const bool pipeline = tuning.finalists.front().problem.objective() == Objective::throughput;
  return RecordTable<Baseline>({
      {"name", "without a plan", words(), [](const auto& hint) { return hint.name; }},
      {"measured", "measured", time_in(TimeUnit::milliseconds),
       [pipeline](const auto& hint) { return (pipeline ? hint.per_sample : hint.latency).median; }},
      {"valid", "valid", words(),
       [pipeline](const auto& hint) {
         return (pipeline ? hint.per_sample : hint.latency).valid();
       }},
  });
}

void print_text(const Tuning& tuning) {
  fmt::print("{}\n{}\n", round_table(tuning, tuning.rounds).text(tuning.rounds), tuning.ending);
  if (tuning.finalists.empty()) return;
  fmt::print("\n{}\n", round_table(tuning, tuning.finalists).text(tuning.finalists));
  if (!tuning.hints.empty()) fmt::print("{}\n", hint_table(tuning).text(tuning.hints));
  fmt::print("{}\n", headline(tuning));
  if (const Baseline* hint = tuning.faster_hint()) {
    fmt::print("the backend's {} alone was faster: use it in place of the plan\n", hint->name);
  }
}

void print_document(const Tuning& tuning) {
  const TuningRound* best = tuning.best();
  Json document = {{"ending", tuning.ending},
                   {"rounds", round_table(tuning, tuning.rounds).json(tuning.rounds)},
                   {"finalists", Json::array()},
                   {"hints", Json::array()},
                   {"best", Json()}};
  if (best != nullptr) {
    document["finalists"] = round_table(tuning, tuning.finalists).json(tuning.finalists);
    document["best"] = best - tuning.finalists.data() + 1;
    document["hints"] = hint_table(tuning).json(tuning.hints);
  }
  print_json(document);
}

Tuning tuned(const TuneOptions& options) {
  const auto require_runnable = [](std::optional<Objective> objective) {
    if (!objective || record_of(*objective).runs) return;
    throw UsageError(fmt::format("plans for {} cannot be run; tune for latency or throughput",
                                 name_of(*objective)));
  };
  require_runnable(options.problem.objective);  // before a model is measured
  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  require_runnable(file.draft.objective);
  const std::string caution = caution_of(cost_source(file.draft));
  if (!caution.empty()) options.output.warn({caution});
  TuneRequest request{.plan = {.planner = options.planner, .budget = options.budget.budget()},
                      .rounds = options.rounds,
                      .repeat = options.repeat,
                      .at_least = kShortestComparison};
  const Interruption interruption;
  StatusLine status(!options.output.quiet);
  request.stop = interruption.flag();
  request.progress = [&](const std::string& what) { status.show(what); };
  const std::string name = file.file;
  ProblemDraft costs = build_problem(std::move(file)).draft();
  try {
    return tune(std::move(costs), std::move(request));
  } catch (const std::invalid_argument& error) {
    throw InputError(name, "", fmt::format("cannot be run here: {}", error.what()));
  }
}

ExitCode tune_problem(const TuneOptions& options) {
  const Tuning tuning = tuned(options);
  if (tuning.rounds.empty()) {
    tell(fmt::format("placewright: {}; nothing is written\n", tuning.ending));
    return ExitCode::no;
  }
  if (options.output.json) {
    print_document(tuning);
  } else if (!options.output.quiet) {
    print_text(tuning);
  }
  if (!options.corrected.empty()) {
    // The costs as they are after the last round.
    write_whole(options.corrected, write_problem(tuning.rounds.back().corrected_draft()));
  }
  const TuningRound* best = tuning.best();
  if (best == nullptr) {
    tell("placewright: interrupted before the final measurement; no plan is kept\n");
    return ExitCode::no;
  }
  if (!best->valid()) {
    options.output.warn(
        {fmt::format("the final measurement is not valid ({}), so the uncut model is kept; stop "
                     "other programs, or measure longer with --repeat",
                     doubt_of(best->result.value))});
  }
  if (!options.path.empty()) {
    const TuningRound kept = best->with_corrected_costs();
    save_plan(options.path, kept.problem, kept.outcome);
  }
  return ExitCode::success;
}

}  // namespace

void add_tune(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "tune", "Plan, run the plan, correct the costs by the measured times, and plan again");
  const auto options = std::make_shared<TuneOptions>();
  options->budget.time_limit = "3s";
  options->problem.add_argument_to(*verb);
  options->budget.add_to(*verb, BudgetOptions::Start::none);
  verb->add_option("--planner", options->planner,
                   "Use this planner; 'placewright planners' lists them")
      ->capture_default_str()
      ->type_name("NAME");
  add_number(*verb, "--rounds", options->rounds, {1, 1000}, "Run at most this many plans");
  add_number(*verb, "--repeat", options->repeat, {1, 1000000},
             "Take this many undisturbed runs for each measurement");
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path, "Write the best measured plan to this file");
  add_written(*verb, "--corrected", options->corrected,
              "Write the problem with corrected costs to this file");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return tune_problem(*options); }; });
}

}  // namespace placewright::cli
