#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "cli/comparison.h"
#include "cli/input_options.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/plan_summary.h"
#include "cli/run_trace.h"
#include "cli/status_line.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/array_files.h"
#include "formats/input_error.h"
#include "formats/plan_rows.h"
#include "formats/run_file.h"
#include "formats/text_file.h"
#include "formats/trace_export.h"
#include "problem/cost_source.h"
#include "problem/time_unit.h"
#include "running/baselines.h"
#include "running/execution.h"
#include "running/run_record.h"
#include "running/turns.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

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
  bool repeat_given = false;
  bool no_compare = false;
  bool no_baselines = false;
};

std::string milliseconds_text(double milliseconds) {
  return value_text(milliseconds, TimeUnit::milliseconds);
}

// What other work disturbed is shown, and marked.
std::string measured_text(const Measured& measured) {
  if (measured.median <= 0) return "not measured";
  return milliseconds_text(measured.median) + (measured.valid() ? "" : ", disturbed");
}

// "2426 samples/s", the same.
std::string rate_text(const Measured& per_sample) {
  if (per_sample.median <= 0) return "not measured";
  return fmt::format("{} samples/s{}", number_text(1000 / per_sample.median),
                     per_sample.valid() ? "" : ", disturbed");
}

std::string percent_text(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

// How far a prediction is from what was measured.
double error_of(double predicted, double found) {
  return found > 0 ? predicted / found - 1 : 0;
}

struct Report {
  const Problem& problem;
  const Plan& plan;
  const RunResult& result;
  const std::vector<Baseline>& baselines;
  double scale;  // milliseconds for each unit of the problem

  [[nodiscard]] double predicted() const { return plan.value * scale; }
  [[nodiscard]] bool pipeline() const { return !plan.schedule; }
  // What the plan's value is compared with.
  [[nodiscard]] const Measured& of(const Baseline& baseline) const {
    return pipeline() ? baseline.per_sample : baseline.latency;
  }
  // The fastest that was measured without a plan; nullptr if there is none.
  [[nodiscard]] const Baseline* best_baseline() const {
    const Baseline* best = nullptr;
    for (const Baseline& baseline : baselines) {
      if (!of(baseline).valid()) continue;
      if (best == nullptr || of(baseline).median < of(*best).median) best = &baseline;
    }
    return best;
  }
};

// One sentence: how fast, and whether the plan was worth it.
std::string headline(const Report& report) {
  const Measured& own = report.result.value;
  std::string text = fmt::format(
      "{}: ", report.pipeline() ? "throughput" : std::string(name_of(report.problem.objective())));
  text += report.pipeline() ? fmt::format("{}, {} each", rate_text(own), measured_text(own))
                            : measured_text(own);
  const Baseline* best = report.best_baseline();
  if (best != nullptr && own.valid()) {
    if (best->is_plan) {
      return text + fmt::format("; the plan is the best without one: {}", best->name);
    }
    const Measured& other = report.of(*best);
    const std::string rival =
        fmt::format("{} ({}), the best without a plan", best->name,
                    report.pipeline() ? rate_text(other) : measured_text(other));
    text += "; " + comparison_text(other.median / own.median, rival);
  } else if (!report.baselines.empty()) {
    text += "; not compared with the model without a plan, since other work disturbed one of them";
  }
  return text;
}

std::string value_table(const Report& report) {
  TextTable table({{""},
                   {"predicted", Align::right},
                   {"measured", Align::right},
                   {"prediction is off by", Align::right},
                   {"spread", Align::right}});
  const auto add = [&](const std::string& what, double predicted, const Measured& found) {
    table.add({what, milliseconds_text(predicted), measured_text(found),
               found.valid() ? percent_text(error_of(predicted, found.median)) : "-",
               fmt::format("{:.1f} %", 100 * found.spread())});
  };
  add(report.pipeline() ? "time per sample" : std::string(name_of(report.problem.objective())),
      report.predicted(), report.result.value);
  if (report.problem.model_count() > 1) {
    for (const ModelId model : report.problem.models()) {
      double end = 0;
      for (const OpId op : report.problem.ops()) {
        if (report.problem.op(op).model == model && report.plan.schedule) {
          end = std::max(end, report.plan.schedule->end[op]);
        }
      }
      if (model.index() < report.result.completions.size()) {
        add(fmt::format("  {} ends", report.problem.model(model).name), end * report.scale,
            report.result.completions[model.index()]);
      }
    }
  }
  return table.text();
}

std::string device_times_table(const Report& report) {
  TextTable table({{"device"},
                   {"segments", Align::right},
                   {"ops", Align::right},
                   {"busy, predicted", Align::right},
                   {"busy, measured", Align::right}});
  for (const DeviceId device : report.problem.devices()) {
    std::size_t segments = 0;
    std::size_t ops = 0;
    double predicted = 0;
    for (const Segment& segment : report.result.segments) {
      const auto& devices = segment.devices;
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) continue;
      ++segments;
      ops += segment.ops.size();
      predicted += segment.predicted * report.scale / static_cast<double>(devices.size());
    }
    table.add({report.problem.device(device).name, fmt::format("{}", segments),
               fmt::format("{}", ops), milliseconds_text(predicted),
               milliseconds_text(report.result.busy[device])});
  }
  return table.text();
}

std::string segments_table(const Report& report) {
  TextTable table({{"segment", Align::right},
                   {"device"},
                   {"ops", Align::right},
                   {"first op"},
                   {"predicted", Align::right},
                   {"measured", Align::right}});
  for (std::size_t i = 0; i < report.result.segments.size(); ++i) {
    const Segment& segment = report.result.segments[i];
    table.add({fmt::format("{}", i + 1),
               fmt::format("{}", fmt::join(device_names(report.problem, segment.devices), ", ")),
               fmt::format("{}", segment.ops.size()), report.problem.op(segment.ops.front()).name,
               milliseconds_text(segment.predicted * report.scale),
               measured_text(report.result.segment_times[i])});
  }
  return table.text();
}

std::string transfers_table(const Report& report) {
  TextTable table(
      {{"copied"}, {"from"}, {"to"}, {"bytes", Align::right}, {"measured", Align::right}});
  for (std::size_t i = 0; i < report.result.copies.size(); ++i) {
    const TensorCopy& copy = report.result.copies[i];
    table.add({copy.tensor, report.problem.device(copy.from).name,
               report.problem.device(copy.to).name, fmt::format("{:.0f}", copy.bytes),
               measured_text(report.result.copy_times[i])});
  }
  return table.text();
}

std::string baselines_table(const Report& report) {
  TextTable table({{"without a plan"},
                   {"latency", Align::right},
                   {"throughput", Align::right},
                   {"the plan is", Align::right}});
  for (const Baseline& baseline : report.baselines) {
    const Measured& rival = report.of(baseline);
    const Measured& own = report.result.value;
    table.add({baseline.name, measured_text(baseline.latency), rate_text(baseline.per_sample),
               baseline.is_plan ? "the same"
               : own.valid() && rival.valid()
                   ? fmt::format("{:.3g} times as fast", rival.median / own.median)
                   : "-"});
  }
  return table.text();
}

void print_text(const Report& report) {
  const RunResult& result = report.result;
  fmt::print("{}: {} segment{}, {} samples measured, {} of them disturbed\n\n",
             printable(report.problem.name()), result.segments.size(),
             result.segments.size() == 1 ? "" : "s", result.value.kept + result.value.rejected,
             result.value.rejected);
  fmt::print("{}", value_table(report));
  if (!result.value.watched) {
    fmt::print("a device cannot tell whether others used it: the times may be disturbed\n");
  }
  fmt::print("\n{}", device_times_table(report));
  if (result.segments.size() <= kMostSegmentsShown) fmt::print("\n{}", segments_table(report));
  if (!result.copies.empty() && result.copies.size() <= kMostSegmentsShown) {
    fmt::print("\n{}", transfers_table(report));
  }
  if (!report.baselines.empty()) fmt::print("\n{}", baselines_table(report));
  if (result.outputs.compared) {
    fmt::print("\noutputs: {} (largest difference {:.1e} of the largest value)\n",
               result.outputs.equal() ? coloured("equal to the unsplit model's", Colour::green)
                                      : coloured("NOT equal to the unsplit model's", Colour::red),
               result.outputs.largest_difference);
  }
  fmt::print("{}\n", headline(report));
  const std::string caution = caution_of(cost_source(report.problem.draft()));
  if (!caution.empty()) fmt::print("caution: {}\n", caution);
}

RunFile run_file_of(const Report& report) {
  return placewright::run_file_of(report.problem, report.plan, report.result, report.baselines);
}

void write_timeline(const std::string& path, const Report& report) {
  std::vector<MeasuredSlice> slices;
  for (const StepEvent& event : report.result.events) {
    if (event.step >= report.result.segments.size()) continue;
    slices.push_back({event.device,
                      report.pipeline()
                          ? fmt::format("sample {}, segment {}", event.sample, event.step + 1)
                          : fmt::format("segment {}", event.step + 1),
                      event.start / report.scale, event.end / report.scale});
  }
  write_whole(path, trace_json(report.problem, report.plan, slices));
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
        throw InputError(input_name(plan), "",
                         fmt::format("the output '{}' cannot be written for --outputs: {}",
                                     output.name, error.what()));
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
    fmt::print(stderr,
               "placewright: the output '{}' differs from the unsplit model's by {:.1e} of its "
               "largest value\n",
               printable(result.outputs.worst_output), result.outputs.largest_difference);
    return ExitCode::no;
  }
  if (!result.value.valid() && !result.interrupted) {
    fmt::print(stderr,
               "placewright: the measurement is not valid: other work took the cores in {} of {} "
               "samples; stop other programs, or measure longer with '--duration 30'\n",
               result.value.rejected, result.value.rejected + result.value.kept);
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
    throw UsageError("give a plan, or a trace of arrivals with --trace");
  }
  const OpenedPlan loaded = options.plan.read(options.output);
  const Problem& problem = loaded.problem;
  if (problem.objective() == Objective::call_latency) {
    throw UsageError("plans for call-latency cannot be run; plan for latency or throughput");
  }
  const auto violations = loaded.violations();
  if (!violations.empty()) {
    throw InputError(input_name(options.plan.path), "",
                     fmt::format("the plan is not valid: {}", violations.front().message));
  }
  const auto models = models_of(problem);
  if (!options.outputs.empty()) require_writable_results(options.plan.path, models);

  const Interruption interruption;
  RunOptions run_options = options.run;
  run_options.compare = !options.no_compare;
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
      if (options.no_baselines || models.size() > 1) {
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
  const Report report{problem, loaded.plan(), result, run.baselines,
                      milliseconds_in(problem.unit())};
  if (!options.timeline.empty()) write_timeline(options.timeline, report);
  if (!options.path.empty()) {
    write_whole(options.path, write_run(run_file_of(report)));
  }
  if (!options.outputs.empty()) write_results(options.outputs, problem, result.results);
  if (options.output.json) {
    fmt::print("{}", write_run(run_file_of(report)));
  } else if (!options.output.quiet) {
    print_text(report);
  }
  return verdict(result);
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("run", "Run a plan on the real devices, predicted beside measured");
  const auto options = std::make_shared<RunVerbOptions>();
  options->plan.add_to(*verb);
  CLI::Option* plan = verb->get_option("plan")->required(false);
  options->output.add_to(*verb);
  add_number(*verb, "--repeat", options->run.repeat, {1, 1000000}, "Samples that count")
      ->group("Run");
  add_number(*verb, "--warm-up", options->run.warm_up, {0, 1000000}, "Samples before them")
      ->group("Run");
  add_number(*verb, "--duration", options->run.duration, {0.01, 86400},
             "Run for this many seconds instead")
      ->group("Run")
      ->default_str("");
  add_number(*verb, "--slots", options->run.slots, {1, 1000},
             "Samples on their way in a pipeline (two for each segment)")
      ->group("Run")
      ->default_str("");
  add_number(*verb, "--seed", options->run.seed, kAnySeed, "Seed of the inputs that are not given")
      ->group("Run");
  options->inputs.add_to(*verb);
  verb->add_flag("--no-compare", options->no_compare,
                 "Do not compare the outputs with those of the unsplit model")
      ->group("Run");
  verb->add_flag("--no-baselines", options->no_baselines,
                 "Do not measure what the backend gives without a plan")
      ->group("Run");
  verb->add_option("-o,--output", options->path,
                   "Write what was measured, for 'placewright report'")
      ->type_name("FILE")
      ->group("Output");
  verb->add_option("--outputs", options->outputs,
                   "Write what the models computed into this folder, as OUTPUT.npy")
      ->type_name("FOLDER")
      ->group("Output");
  verb->add_option("--timeline", options->timeline, "Write both time lines for ui.perfetto.dev")
      ->type_name("FILE")
      ->group("Output");
  verb->add_option("--trace", options->trace,
                   "In place of a plan: models that arrive over time, planned as they come")
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
