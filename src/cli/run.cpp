#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "cli/choice_option.h"
#include "cli/comparison.h"
#include "cli/input_options.h"
#include "cli/interruption.h"
#include "cli/measured_text.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/plan_summary.h"
#include "cli/record_table.h"
#include "cli/run_trace.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/array_files.h"
#include "formats/input_error.h"
#include "formats/run_file.h"
#include "formats/text_file.h"
#include "formats/trace_export.h"
#include "problem/cost_source.h"
#include "problem/time_unit.h"
#include "report/accuracy_story.h"
#include "running/baselines.h"
#include "running/execution.h"
#include "running/run_record.h"
#include "running/turns.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright run plan.json                        predicted beside measured\n"
    "  placewright run plan.json --duration 10          for ten seconds\n"
    "  placewright run plan.json --input image=cat.png --outputs results\n"
    "  placewright run plan.json --timeline lanes.json  both time lines, for ui.perfetto.dev\n"
    "  placewright run --trace arrivals.json            models that arrive while others run\n"
    "  placewright run plan.json -o run.json            for 'placewright report --run run.json'\n"
    "  placewright run plan.json --json";

constexpr std::size_t kMostSegmentsShown = 24;

struct RunVerbOptions {
  PlanOptions plan;
  OutputOptions output;
  RunOptions run;
  InputOptions inputs;
  std::string path;
  std::string outputs;  // a folder
  std::string trace;    // of arrivals
  std::string timeline;
  std::optional<Precision> precision;
  bool repeat_given = false;
  bool no_compare = false;
  bool no_baselines = false;
};

// What is shown: the records of the run file, so that no table has what the file lacks.
struct Report {
  const Problem& problem;
  const RunResult& result;
  RunFile run;

  [[nodiscard]] bool pipeline() const { return run.objective == Objective::throughput; }
  [[nodiscard]] std::string value_name() const {
    return pipeline() ? "time per sample" : std::string(name_of(run.objective));
  }
};

// One sentence: how fast, and whether the plan was worth it.
std::string headline(const Report& report) {
  const Measured& own = report.run.measured;
  std::string text =
      report.pipeline() ? fmt::format("throughput: {}, {} each", rate_text(own), measured_text(own))
                        : fmt::format("{}: {}", report.value_name(), measured_text(own));
  if (report.run.baselines.empty()) return text;
  const RunBaseline* best = report.run.best_baseline();
  if (best == nullptr || !own.valid() || !report.run.rival(*best).valid()) {
    return text + fmt::format("; not compared with {}: one of the two measurements is not valid",
                              best != nullptr ? best->name : "what there is without a plan");
  }
  if (best->is_plan) {
    return text + fmt::format("; the plan is the same as {}, the fastest setting without a plan",
                              best->name);
  }
  const Measured& other = report.run.rival(*best);
  const std::string rival =
      fmt::format("{} ({}), the best without a plan", best->name,
                  report.pipeline() ? rate_text(other) : measured_text(other));
  return text + "; " + comparison_text(other.median / own.median, rival);
}

Style milliseconds() {
  return time_in(TimeUnit::milliseconds);
}

// Predicted beside measured.
struct ComparedTime {
  std::string what;
  double predicted = 0;
  Measured measured;

  // How far the prediction is from what was measured.
  [[nodiscard]] Json error() const {
    if (!measured.valid()) return {};
    return measured.median > 0 ? predicted / measured.median - 1 : 0;
  }
};

// The plan's value; of several models also when each of them ends.
std::vector<ComparedTime> compared_times(const Report& report) {
  const RunFile& run = report.run;
  std::vector<ComparedTime> times = {{report.value_name(), run.predicted, run.measured}};
  if (run.models.size() == 1) return times;
  for (const RunModel& model : run.models) {
    if (!model.completion) continue;
    times.push_back(
        {fmt::format("  {} ends", model.name), model.predicted.value_or(0), *model.completion});
  }
  return times;
}

RecordTable<ComparedTime> time_table() {
  return RecordTable<ComparedTime>({
      {kNoKey, "", words(), [](const auto& time) { return time.what; }},
      {kNoKey, "predicted", milliseconds(), [](const auto& time) { return time.predicted; }},
      {kNoKey, "measured", words(Align::right),
       [](const auto& time) { return measured_text(time.measured); }},
      {kNoKey, "prediction is off by", scaled(100, "{:+.1f} %"),
       [](const auto& time) { return time.error(); }},
      {kNoKey, "spread", scaled(100, "{:.1f} %"),
       [](const auto& time) { return time.measured.spread(); }},
  });
}

RecordTable<RunDevice> device_times_table() {
  return RecordTable<RunDevice>({
      {kNoKey, "device", words(), [](const auto& device) { return device.name; }},
      {kNoKey, "segments", count(), [](const auto& device) { return device.segments; }},
      {kNoKey, "ops", count(), [](const auto& device) { return device.ops; }},
      {kNoKey, "busy, predicted", milliseconds(),
       [](const auto& device) { return device.predicted; }},
      {kNoKey, "busy, measured", milliseconds(), [](const auto& device) { return device.busy; }},
  });
}

RecordTable<RunSegment> segment_table(const RunFile& run) {
  return RecordTable<RunSegment>({
      {kNoKey, "segment", count(),
       [&](const auto& segment) { return &segment - run.segments.data() + 1; }},
      {kNoKey, "device", words(), [](const auto& segment) { return segment.device; }},
      {kNoKey, "ops", count(), [](const auto& segment) { return segment.ops; }},
      {kNoKey, "first op", words(), [](const auto& segment) { return segment.first_op; }},
      {kNoKey, "predicted", milliseconds(), [](const auto& segment) { return segment.predicted; }},
      {kNoKey, "measured", words(Align::right),
       [](const auto& segment) { return measured_text(segment.measured); }},
  });
}

RecordTable<RunTransfer> transfer_table() {
  return RecordTable<RunTransfer>({
      {kNoKey, "copied", words(), [](const auto& transfer) { return transfer.tensor; }},
      {kNoKey, "from", words(), [](const auto& transfer) { return transfer.from; }},
      {kNoKey, "to", words(), [](const auto& transfer) { return transfer.to; }},
      {kNoKey, "bytes", number("{:.0f}"), [](const auto& transfer) { return transfer.bytes; }},
      {kNoKey, "measured", words(Align::right),
       [](const auto& transfer) { return measured_text(transfer.measured); }},
  });
}

RecordTable<RunBaseline> baseline_table(const RunFile& run) {
  const auto compared = [&](const RunBaseline& baseline) -> std::string {
    const Measured& rival = run.rival(baseline);
    if (baseline.is_plan) return "the same";
    if (!run.measured.valid() || !rival.valid()) return "-";
    return fmt::format("{:.3g} times as fast", rival.median / run.measured.median);
  };
  std::optional<std::string> total;  // a title
  if (run.objective == Objective::total_completion && run.models.size() > 1) {
    total = "total completion";
  }
  const auto value = [&](const RunBaseline& baseline) {
    return measured_text(run.rival(baseline));
  };
  return RecordTable<RunBaseline>({
      {kNoKey, "without a plan", words(), [](const auto& baseline) { return baseline.name; }},
      {kNoKey, total, words(Align::right), value},
      {kNoKey, "latency", words(Align::right),
       [](const auto& baseline) { return measured_text(baseline.latency); }},
      {kNoKey, "throughput", words(Align::right),
       [](const auto& baseline) { return rate_text(baseline.per_sample); }},
      {kNoKey, "the plan is", words(Align::right), compared},
  });
}

void print_outputs(const RunFile& run) {
  const RunOutputs& outputs = *run.outputs;
  const std::string precision =
      run.precision ? fmt::format(" in {}", name_of(*run.precision)) : std::string{};
  fmt::print("\noutputs: {}{} (largest difference {:.1e} of the largest value)\n",
             outputs.equal ? coloured("equal to the unsplit model's", Colour::green)
                           : coloured("NOT equal to the unsplit model's", Colour::red),
             precision, outputs.largest_difference.value_or(kInfinity));
  const std::string accuracy = accuracy_sentence(run);
  if (!accuracy.empty()) fmt::print("{}\n", accuracy);
}

void print_text(const Report& report) {
  const auto& [problem, result, run] = report;
  const std::size_t counted = run.measured.kept + run.measured.rejected;
  fmt::print("{}: {} segment{}, {} samples measured{}, {} of them disturbed\n\n",
             printable(problem.name()), run.segments.size(), run.segments.size() == 1 ? "" : "s",
             result.samples, report.pipeline() ? fmt::format(" in {} blocks", counted) : "",
             run.measured.rejected);
  fmt::print("{}", time_table().text(compared_times(report)));
  if (!run.measured.watched) {
    fmt::print(
        "a device cannot report whether other programs used it; the times may be disturbed\n");
  }
  fmt::print("\n{}", device_times_table().text(run.devices));
  if (run.segments.size() <= kMostSegmentsShown) {
    fmt::print("\n{}", segment_table(run).text(run.segments));
  }
  if (!run.transfers.empty() && run.transfers.size() <= kMostSegmentsShown) {
    fmt::print("\n{}", transfer_table().text(run.transfers));
  }
  if (!run.baselines.empty()) fmt::print("\n{}", baseline_table(run).text(run.baselines));
  if (run.outputs) print_outputs(run);
  fmt::print("{}\n", headline(report));
  const std::string caution = caution_of(cost_source(problem.draft()));
  if (!caution.empty()) fmt::print("caution: {}\n", caution);
}

void write_timeline(const std::string& path, const Report& report, const Plan& plan) {
  const double scale = milliseconds_in(report.problem.unit());
  std::vector<MeasuredSlice> slices;
  for (const RunEvent& event : report.run.timeline) {
    if (!event.segment) continue;
    slices.push_back({DeviceId{event.device},
                      report.pipeline()
                          ? fmt::format("sample {}, segment {}", event.sample, *event.segment + 1)
                          : fmt::format("segment {}", *event.segment + 1),
                      event.start / scale, event.end / scale});
  }
  write_whole(path, trace_json(report.problem, plan, slices));
}

// NumPy has no bf16, but all of its numbers as f32.
std::string npy_of_result(const Array& array) {
  return npy_bytes(array.element == "bf16" ? as_input(array, "f32", array.shape) : array);
}

// Says before the run what npy_of_result would say after it.
void require_writable_results(const std::string& plan,
                              const std::vector<std::unique_ptr<NeuralModel>>& models) {
  for (const auto& model : models) {
    for (const GraphOutput& output : model->graph().outputs) {
      const std::string& element = type_of(model->graph(), output.tensor).element;
      try {
        (void)npy_of_result({.element = element, .shape = {0}, .bytes = {}});
      } catch (const std::invalid_argument& error) {
        throw InputError(
            input_name(plan), "",
            fmt::format("--outputs: cannot write the output '{}': {}", output.name, error.what()));
      }
    }
  }
}

// FOLDER/OUTPUT.npy, of several models FOLDER/MODEL/OUTPUT.npy.
void write_results(const std::string& folder, const Problem& problem,
                   const std::vector<NamedArrays>& results) {
  for (std::size_t model = 0; model < results.size(); ++model) {
    std::filesystem::path place(folder);
    if (results.size() > 1) place /= file_name_of(problem.model(ModelId{model}).name);
    std::error_code failed;  // then write_whole says why
    std::filesystem::create_directories(place, failed);
    for (const auto& [name, array] : results[model]) {
      write_whole((place / (file_name_of(name) + ".npy")).string(), npy_of_result(array));
    }
  }
}

ExitCode verdict(const RunResult& result) {
  if (result.outputs.compared && !result.outputs.equal()) {
    tell(fmt::format(
        "placewright: the output '{}' differs from the unsplit model's by {:.1e} of its "
        "largest value\n",
        printable(result.outputs.worst_output), result.outputs.largest_difference));
    return ExitCode::no;
  }
  if (!result.value.valid() && !result.interrupted) {
    complain(result.value, "--duration 30");
    return ExitCode::no;
  }
  return ExitCode::success;
}

ExitCode run_arrivals_of(const RunVerbOptions& options) {
  RunTraceOptions trace{.trace = options.trace,
                        .seed = options.run.seed,
                        .timeline = options.timeline,
                        .path = options.path,
                        .output = options.output};
  if (options.repeat_given) trace.repeat = static_cast<std::size_t>(options.run.repeat);
  return run_trace(trace);
}

ExitCode run(const RunVerbOptions& options) {
  if (!options.trace.empty()) return run_arrivals_of(options);
  if (options.plan.path.empty()) {
    throw UsageError("'run' needs a plan, or a trace of arrivals with --trace");
  }
  const OpenedPlan loaded = options.plan.read(options.output);
  const Problem& problem = loaded.problem;
  if (!record_of(problem.objective()).runs) {
    throw UsageError(
        fmt::format("a plan for {} cannot be run; plan with --objective latency or throughput",
                    name_of(problem.objective())));
  }
  const auto violations = loaded.violations();
  if (!violations.empty()) {
    throw InputError(input_name(options.plan.path), "",
                     fmt::format("the plan is not valid: {}", violations.front().message));
  }
  const auto models = models_of(problem, options.precision);
  if (!options.outputs.empty()) require_writable_results(options.plan.path, models);

  const Interruption interruption;
  RunOptions run_options = options.run;
  run_options.compare = !options.no_compare;
  run_options.against_f32 = true;
  run_options.inputs = options.inputs.read(problem, models);
  run_options.keep_results = !options.outputs.empty();
  run_options.stop = interruption.flag();
  ComparedRun run;
  {
    StatusLine status(!options.output.quiet && !options.output.json);
    run_options.progress = [&](double done) {
      status.show(fmt::format("running {:.0f} %", 100 * done));
    };
    try {
      if (options.no_baselines) {
        run.result = run_plan(problem, loaded.plan(), models, run_options);
      } else {
        run_options.at_least = kShortestComparison;
        run = run_beside_baselines(problem, loaded.plan(), models, run_options);
      }
    } catch (const std::invalid_argument& error) {
      throw InputError(input_name(options.plan.path), "",
                       fmt::format("cannot be run here: {}", error.what()));
    }
  }
  const RunResult& result = run.result;
  Report report{problem, result, run_file_of(problem, loaded.plan(), result, run.baselines)};
  report.run.turns = std::move(run.turns);
  if (!options.timeline.empty()) write_timeline(options.timeline, report, loaded.plan());
  if (!options.path.empty()) write_whole(options.path, write_run(report.run));
  if (!options.outputs.empty()) write_results(options.outputs, problem, result.results);
  if (options.output.json) {
    fmt::print("{}", write_run(report.run));
  } else if (!options.output.quiet) {
    print_text(report);
  }
  return verdict(result);
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "run", "Run a plan on the real devices, and show predicted beside measured times");
  const auto options = std::make_shared<RunVerbOptions>();
  options->plan.add_to(*verb);
  CLI::Option* plan = verb->get_option("plan")->required(false);
  options->output.add_to(*verb);
  add_number(*verb, "--repeat", options->run.repeat, {1, 1000000}, "Measure this many samples")
      ->group("Run");
  add_number(*verb, "--warm-up", options->run.warm_up, {0, 1000000},
             "Run this many samples first, without measuring them")
      ->group("Run");
  add_number(*verb, "--duration", options->run.duration, {0.01, 86400},
             "Measure for this many seconds instead")
      ->group("Run")
      ->default_str("");
  add_number(*verb, "--slots", options->run.slots, {1, 1000},
             "Samples in a pipeline at a time; default: two for each segment")
      ->group("Run")
      ->default_str("");
  add_number(*verb, "--seed", options->run.seed, kAnySeed, "Seed of the random inputs")
      ->group("Run");
  add_choice(*verb, "--precision", options->precision,
             "Compute in this precision, in place of the plan's")
      ->group("Run");
  options->inputs.add_to(*verb);
  verb->add_flag("--no-compare", options->no_compare,
                 "Do not compare the outputs with those of the unsplit model")
      ->group("Run");
  verb->add_flag("--no-baselines", options->no_baselines,
                 "Do not measure the backend without a plan")
      ->group("Run");
  add_written(*verb, "-o,--output", options->path,
              "Write the measurements, for 'placewright report --run'");
  add_written(*verb, "--outputs", options->outputs,
              "Write the models' outputs into this folder, as OUTPUT.npy", "FOLDER");
  add_written(*verb, "--timeline", options->timeline,
              "Write the predicted and the measured time line, for ui.perfetto.dev");
  verb->add_option("--trace", options->trace,
                   "Run models that arrive over time, planned as they come, in place of a plan")
      ->type_name("FILE")
      ->excludes(plan)
      ->group("Run");
  verb->footer(kExamples);
  verb->callback([&action, options, verb] {
    options->repeat_given = verb->count("--repeat") > 0;
    action = [options] { return run(*options); };
  });
}

}  // namespace placewright::cli
