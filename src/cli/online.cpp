#include "analysis/online.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "formats/trace_file.h"
#include "problem/join.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright online trace.json\n"
    "  placewright online examples/talos/two_chains.json --poisson 20 --seed 7\n"
    "  placewright online bert.json resnet.json --cluster devices.json --poisson 50 --gap 12 "
    "--json";

// Every arrival brings a copy of its model: more ops than this would take gigabytes.
constexpr std::size_t kMostArrivingOps = 1'000'000;

struct OnlineVerbOptions {
  std::vector<std::string> paths;  // one trace, or the model files
  std::string cluster;
  std::optional<std::size_t> poisson;
  std::optional<double> gap;
  std::uint64_t seed = 1;
  double pack_speedup = OnlineOptions{}.pack_speedup;
  double pack_time = OnlineOptions{}.pack_time;
  OutputOptions output;
};

Problem read_catalogue(const OnlineVerbOptions& options, const std::vector<std::string>& paths,
                       const std::string& cluster) {
  std::vector<ProblemDraft> drafts;
  for (const std::string& path : paths) {
    ReadOptions reading;
    reading.objective = Objective::total_completion;
    reading.cluster = cluster;
    ProblemFile file = read_problem(path, reading);
    options.output.warn(file.warnings);
    drafts.push_back(build_problem(std::move(file)).draft());
  }
  try {
    return Problem(joined(std::move(drafts)));
  } catch (const std::invalid_argument& error) {
    throw InputError(paths.front(), "", error.what());
  }
}

struct Played {
  Problem catalogue;
  ArrivalTrace trace;
};

Played read_trace(const OnlineVerbOptions& options) {
  std::string cluster = options.cluster;
  if (options.poisson) {
    Problem catalogue = read_catalogue(options, options.paths, cluster);
    // Models arrive equally often.
    if (*options.poisson * catalogue.op_count() / catalogue.model_count() > kMostArrivingOps) {
      throw UsageError(
          fmt::format("--poisson: {} arrivals bring more than {} ops, the most that are "
                      "planned",
                      *options.poisson, kMostArrivingOps));
    }
    const double gap = options.gap ? *options.gap : mean_time_alone(catalogue);
    ArrivalTrace trace = poisson_trace(catalogue, *options.poisson, gap, options.seed);
    return {std::move(catalogue), std::move(trace)};
  }
  const std::string& path = options.paths.front();
  const std::string text = read_whole(path);
  if (options.paths.size() > 1 || !is_trace(text, input_name(path))) {
    throw UsageError("model files need --poisson, the number of arrivals; or give one trace file");
  }
  TraceFile file = parse_trace(text, path);
  options.output.warn(file.warnings);
  if (cluster.empty()) cluster = file.cluster;
  return {read_catalogue(options, file.models, cluster), std::move(file.trace)};
}

void print_text(const Played& played, const std::vector<OnlineRun>& runs) {
  const TimeUnit unit = played.catalogue.unit();
  const double bound = runs.front().lower_bound;
  fmt::print("{}\n  {:<16}  {}\n  {:<16}  {}\n  {:<16}  {} (all arrivals known)\n\n",
             printable(played.trace.name), "arrivals", played.trace.arrivals.size(), "decisions",
             runs.front().decisions, "lower bound", value_text(bound, unit));
  TextTable table({{"method"},
                   {"total completion", Align::right},
                   {"to talos", Align::right},
                   {"late", Align::right},
                   {"ops planned", Align::right},
                   {"median", Align::right},
                   {"p99", Align::right},
                   {"processor", Align::right},
                   {"p99", Align::right}});
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f} ms", 1e3 * seconds); };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const OnlineRun& run = runs[i];
    std::size_t late = 0;
    for (const OnlineModel& model : run.models) late += model.late ? 1 : 0;
    const double ratio =
        runs[0].total_completion > 0 ? run.total_completion / runs[0].total_completion : 1;
    table.add({std::string{name_of(values_of<OnlineMethod>()[i])},
               value_text(run.total_completion, unit), fmt::format("{:.3f} x", ratio),
               fmt::format("{}", late), fmt::format("{}", run.planned_ops),
               milliseconds(run.latency.median), milliseconds(run.latency.slowest_percent),
               milliseconds(run.processor.median), milliseconds(run.processor.slowest_percent)});
  }
  fmt::print("{}", table.text());
}

void print_models(const Played& played, const OnlineRun& run) {
  const TimeUnit unit = played.catalogue.unit();
  TextTable table({{"model"}, {"arrival", Align::right}, {"completion", Align::right}, {""}});
  for (std::size_t i = 0; i < run.models.size(); ++i) {
    const TraceArrival& arrival = played.trace.arrivals[i];
    const OnlineModel& model = run.models[i];
    table.add({arrival.name, value_text(arrival.time, unit),
               model.complete ? value_text(model.completion, unit) : "-",
               !model.complete ? "cancelled"
               : model.late    ? "late"
                               : ""});
  }
  fmt::print("\n{}", table.text());
}

void print_document(const Played& played, const std::vector<OnlineRun>& runs) {
  Json document = {{"trace", played.trace.name},
                   {"unit", name_of(played.catalogue.unit())},
                   {"arrivals", played.trace.arrivals.size()},
                   {"methods", Json::array()}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const OnlineRun& run = runs[i];
    Json entry = {{"method", name_of(values_of<OnlineMethod>()[i])},
                  {"total_completion", run.total_completion},
                  {"lower_bound", run.lower_bound},
                  {"decisions", run.decisions},
                  {"planned_ops", run.planned_ops},
                  {"median_seconds", run.latency.median},
                  {"p99_seconds", run.latency.slowest_percent},
                  {"processor_median_seconds", run.processor.median},
                  {"processor_p99_seconds", run.processor.slowest_percent},
                  {"models", Json::array()}};
    for (std::size_t j = 0; j < run.models.size(); ++j) {
      const OnlineModel& model = run.models[j];
      entry["models"].push_back({{"name", played.trace.arrivals[j].name},
                                 {"arrival", played.trace.arrivals[j].time},
                                 {"completion", model.complete ? Json(model.completion) : Json()},
                                 {"late", model.late}});
    }
    document["methods"].push_back(std::move(entry));
  }
  print_json(document);
}

ExitCode online(const OnlineVerbOptions& options) {
  const Played played = read_trace(options);
  std::vector<OnlineRun> runs;
  for (const OnlineMethod method : values_of<OnlineMethod>()) {
    try {
      runs.push_back(run_online(played.catalogue, played.trace, method,
                                {options.pack_speedup, options.pack_time}));
    } catch (const std::invalid_argument& error) {
      throw InputError(options.paths.front(), "", error.what());
    }
    if (!runs.back().fault.empty()) {
      fmt::print(stderr, "placewright: {}: {}\n", name_of(method), printable(runs.back().fault));
      return ExitCode::no;
    }
  }
  if (options.output.json) {
    print_document(played, runs);
  } else if (!options.output.quiet) {
    print_text(played, runs);
    if (options.output.verbose) print_models(played, runs.front());
  }
  return ExitCode::success;
}

}  // namespace

void add_online(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("online", "Plan while models arrive: decisions and their latency");
  const auto options = std::make_shared<OnlineVerbOptions>();
  verb->add_option("trace", options->paths, "A trace file; with --poisson, the models' files")
      ->required()
      ->type_name("FILE");
  add_number(*verb, "--poisson", options->poisson, {1, 1000000},
             "Number of arrivals, of the files' models at random");
  add_number(*verb, "--gap", options->gap, {0, kLargestReal},
             "Mean time between arrivals (default: a model's mean time alone)");
  add_number(*verb, "--seed", options->seed, kAnySeed, "Seed of the arrivals");
  verb->add_option("--cluster", options->cluster, "The devices, where the model files have none")
      ->type_name("FILE");
  add_number(*verb, "--pack-speedup", options->pack_speedup, {1, kLargestReal},
             "Packing: speed-ups within this ratio (1: none)");
  add_number(*verb, "--pack-time", options->pack_time, {0, kLargestReal},
             "Packing: until a group takes this many ms on the CPU (0: none)");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return online(*options); }; });
}

}  // namespace placewright::cli
