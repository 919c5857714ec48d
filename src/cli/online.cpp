#include "analysis/online.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/record_table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "cli/verbs.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "formats/trace_file.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright online trace.json\n"
    "  placewright online examples/talos/two_chains.json --poisson 20 --seed 7\n"
    "  placewright online bert.json resnet.json --cluster devices.json --poisson 50 --gap 12 "
    "--json";

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

PlayedTrace played_trace(const OnlineVerbOptions& options) {
  if (options.poisson) {
    Problem catalogue = read_catalogue(options.paths, options.cluster, options.output);
    const double gap = options.gap ? *options.gap : mean_time_alone(catalogue);
    ArrivalTrace trace = poisson_trace(catalogue, *options.poisson, gap, options.seed);
    return {std::move(catalogue), std::move(trace)};
  }
  const std::string& path = options.paths.front();
  const std::string text = read_whole(path);
  if (options.paths.size() > 1 || !is_trace(text, input_name(path))) {
    throw UsageError(
        "model files need --poisson (the number of arrivals); otherwise give one trace file");
  }
  return read_trace(text, path, options.cluster, options.output);
}

// A method of planning, and what it came to.
struct MethodRun {
  OnlineMethod method;
  OnlineRun run;

  [[nodiscard]] std::size_t late() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(run.models, [](const OnlineModel& model) { return model.late; }));
  }
};

// A model that arrived, and what became of it.
struct Arrived {
  const TraceArrival& arrival;
  const OnlineModel& model;

  [[nodiscard]] std::string fate() const {
    return !model.complete ? "cancelled" : model.late ? "late" : "";
  }
};

std::vector<Arrived> arrived(const PlayedTrace& played, const OnlineRun& run) {
  std::vector<Arrived> all;
  for (std::size_t i = 0; i < run.models.size(); ++i) {
    all.push_back({played.trace.arrivals[i], run.models[i]});
  }
  return all;
}

RecordTable<Arrived> arrived_table(TimeUnit unit) {
  return RecordTable<Arrived>({
      {"name", "model", words(), [](const auto& entry) { return entry.arrival.name; }},
      {"arrival", "arrival", time_in(unit), [](const auto& entry) { return entry.arrival.time; }},
      {"completion", "completion", time_in(unit),
       [](const auto& entry) {
         return entry.model.complete ? Json(entry.model.completion) : Json();
       }},
      {"late", kNoTitle, words(), [](const auto& entry) { return entry.model.late; }},
      {kNoKey, "", words(), [](const auto& entry) { return entry.fate(); }},
  });
}

RecordTable<MethodRun> method_table(const PlayedTrace& played, const std::vector<MethodRun>& all) {
  const TimeUnit unit = played.catalogue.unit();
  const Style milliseconds = scaled(1e3, "{:.3f} ms");
  const double talos = all.front().run.total_completion;
  return RecordTable<MethodRun>({
      {"method", "method", words(), [](const auto& m) { return name_of(m.method); }},
      {"total_completion", "total completion", time_in(unit),
       [](const auto& m) { return m.run.total_completion; }},
      {kNoKey, "to talos", number("{:.3f} x"),
       [talos](const auto& m) { return talos > 0 ? m.run.total_completion / talos : 1; }},
      {kNoKey, "late", count(), [](const auto& m) { return m.late(); }},
      {"lower_bound", kNoTitle, time_in(unit), [](const auto& m) { return m.run.lower_bound; }},
      {"decisions", kNoTitle, count(), [](const auto& m) { return m.run.decisions; }},
      {"planned_ops", "ops planned", count(), [](const auto& m) { return m.run.planned_ops; }},
      {"median_seconds", "median", milliseconds,
       [](const auto& m) { return m.run.latency.median; }},
      {"p99_seconds", "p99", milliseconds,
       [](const auto& m) { return m.run.latency.slowest_percent; }},
      {"processor_median_seconds", "processor", milliseconds,
       [](const auto& m) { return m.run.processor.median; }},
      {"processor_p99_seconds", "p99", milliseconds,
       [](const auto& m) { return m.run.processor.slowest_percent; }},
      {"models", kNoTitle, words(),
       [&played, unit](const auto& m) { return arrived_table(unit).json(arrived(played, m.run)); }},
  });
}

void print_text(const PlayedTrace& played, const std::vector<MethodRun>& runs) {
  const OnlineRun& first = runs.front().run;
  fmt::print("{}\n{}{}{}\n{}", printable(played.trace.name),
             titled_line("arrivals", fmt::format("{}", played.trace.arrivals.size()), 2),
             titled_line("decisions", fmt::format("{}", first.decisions), 2),
             titled_line("lower bound",
                         fmt::format("{} (all arrivals known)",
                                     value_text(first.lower_bound, played.catalogue.unit())),
                         2),
             method_table(played, runs).text(runs));
}

void print_document(const PlayedTrace& played, const std::vector<MethodRun>& runs) {
  print_json({{"trace", played.trace.name},
              {"unit", name_of(played.catalogue.unit())},
              {"arrivals", played.trace.arrivals.size()},
              {"methods", method_table(played, runs).json(runs)}});
}

ExitCode online(const OnlineVerbOptions& options) {
  const PlayedTrace played = played_trace(options);
  std::vector<MethodRun> runs;
  for (const OnlineMethod method : values_of<OnlineMethod>()) {
    try {
      runs.push_back({method, run_online(played.catalogue, played.trace, method,
                                         {options.pack_speedup, options.pack_time})});
    } catch (const std::invalid_argument& error) {
      throw InputError(options.paths.front(), "", error.what());
    }
    const std::string& fault = runs.back().run.fault;
    if (!fault.empty()) {
      tell(fmt::format("placewright: {}: {}\n", name_of(method), printable(fault)));
      return ExitCode::no;
    }
  }
  if (options.output.json) {
    print_document(played, runs);
  } else if (!options.output.quiet) {
    print_text(played, runs);
    if (options.output.verbose) {
      fmt::print("\n{}",
                 arrived_table(played.catalogue.unit()).text(arrived(played, runs.front().run)));
    }
  }
  return ExitCode::success;
}

}  // namespace

void add_online(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "online", "Plan while models arrive, and show how long each decision takes");
  const auto options = std::make_shared<OnlineVerbOptions>();
  verb->add_option("trace", options->paths, "A trace file, or model files with --poisson")
      ->required()
      ->type_name("FILE");
  add_number(*verb, "--poisson", options->poisson, {1, 1000000},
             "Make this many arrivals of the files' models at random");
  add_number(*verb, "--gap", options->gap, {0, kLargestReal},
             "Mean time between arrivals; default: the mean time of a model alone");
  add_number(*verb, "--seed", options->seed, kAnySeed, "Seed of the arrivals");
  verb->add_option("--cluster", options->cluster,
                   "Take the devices from this file, where the model files have none")
      ->type_name("FILE");
  add_number(*verb, "--pack-speedup", options->pack_speedup, {1, kLargestReal},
             "Pack ops whose speed-ups are within this ratio (1: pack none)");
  add_number(*verb, "--pack-time", options->pack_time, {0, kLargestReal},
             "Pack until a group takes this many ms on the CPU (0: pack none)");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return online(*options); }; });
}

}  // namespace placewright::cli
