#include "cli/serve_simulation.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "backends/registry.h"
#include "cli/model_problem.h"
#include "cli/number_option.h"
#include "cli/record_table.h"
#include "cli/text.h"
#include "cli/trace_input.h"
#include "formats/arrival_rows.h"
#include "formats/input_error.h"
#include "formats/text_file.h"
#include "problem/time_unit.h"
#include "report/load_chart.h"
#include "serving/load_sweep.h"
#include "serving/model_loader.h"
#include "serving/simulation.h"
#include "serving/stated_models.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

// Models, and when their requests come.
struct ServedLoad {
  std::vector<ServedModel> models;
  std::vector<RequestArrival> arrivals;
};

std::vector<ServedModel> models_from(const Problem& problem, const std::string& path) {
  try {
    std::vector<ServedModel> models = stated_models(problem);
    suppose_segments(models);
    return models;
  } catch (const std::invalid_argument& error) {
    throw InputError(path, "", error.what());
  }
}

std::vector<ServedModel> models_of_files(const ServeSimulationOptions& options) {
  if (options.models.empty())
    throw UsageError("--rate and --simulate need the files of the models");
  const auto is_model = [](const std::string& path) { return backend_reading(path) != nullptr; };
  if (std::ranges::all_of(options.models, is_model)) {
    ServerSettings settings{.models = options.models, .shapes = options.model.shapes};
    settings.precision = options.model.precision.value_or(Precision::by_default);
    settings.cache = cache_folder();
    return served_models(settings);
  }
  if (std::ranges::any_of(options.models, is_model)) {
    throw UsageError("name model files, which are measured, or problem files, but not both");
  }
  return models_from(read_catalogue(options.models, "", options.output), options.models.front());
}

// `scale`: milliseconds for each unit of the trace.
std::vector<RequestArrival> arrivals_of(const ArrivalTrace& trace, const std::string& path,
                                        const std::vector<ServedModel>& models, double scale) {
  std::vector<RequestArrival> arrivals;
  for (const TraceArrival& arrival : trace.arrivals) {
    const auto found = std::ranges::find(models, arrival.model, &ServedModel::name);
    if (found == models.end()) {
      throw InputError(path, "", fmt::format("no model is called '{}'", arrival.model));
    }
    RequestArrival& made = arrivals.emplace_back();
    made.time = arrival.time * scale;
    made.model = static_cast<std::size_t>(found - models.begin());
    if (arrival.deadline) made.deadline = *arrival.deadline * scale;
    if (arrival.cancelled) made.cancelled = *arrival.cancelled * scale;
  }
  std::ranges::stable_sort(arrivals, {}, &RequestArrival::time);
  return arrivals;
}

ServedLoad load_of_trace(const ServeSimulationOptions& options) {
  const std::string text = read_whole(options.trace);
  const std::string name = input_name(options.trace);
  ServedLoad load;
  if (is_arrival_rows(text)) {
    load.models = models_of_files(options);
    load.arrivals = arrivals_of(parse_arrival_rows(text, name), name, load.models, 1);
    return load;
  }
  if (!options.models.empty()) {
    throw UsageError("--simulate: a trace in JSON names its models, so leave out the model files");
  }
  const PlayedTrace played = read_trace(text, options.trace, "", options.output);
  load.models = models_from(played.catalogue, name);
  load.arrivals =
      arrivals_of(played.trace, name, load.models, milliseconds_in(played.catalogue.unit()));
  return load;
}

ServedLoad load_of_rates(const ServeSimulationOptions& options) {
  ServedLoad load{.models = models_of_files(options), .arrivals = {}};
  load.arrivals =
      poisson_arrivals(rates_of(options.rates, load.models), options.requests, options.seed);
  return load;
}

RecordTable<ServiceSummary> summary_table(bool deadlines) {
  const Style time = time_in(TimeUnit::milliseconds);
  const auto shown = [=](const char* title) {
    return deadlines ? std::optional<std::string>(title) : std::nullopt;
  };
  return RecordTable<ServiceSummary>({
      {"model", "model", words(), [](const auto& each) { return each.model; }},
      {"requests", "requests", count(), [](const auto& each) { return each.requests; }},
      {"answered", kNoTitle, count(), [](const auto& each) { return each.answered; }},
      {"mean", "mean", time, [](const auto& each) { return each.mean; }},
      {"p50", "p50", time, [](const auto& each) { return each.p50; }},
      {"p95", "p95", time, [](const auto& each) { return each.p95; }},
      {"p99", "p99", time, [](const auto& each) { return each.p99; }},
      {"times_own", "x own time", number("{:.3g}"),
       [](const auto& each) { return each.normalised; }},
      {"refused", "refused", count(), [](const auto& each) { return each.refused; }},
      {"cancelled", "cancelled", count(), [](const auto& each) { return each.cancelled; }},
      {"in_time", shown("in time"), percent(),
       [](const auto& each) { return each.in_time ? Json(*each.in_time) : Json(); }},
  });
}

RecordTable<ServedModel> model_table() {
  const Style time = time_in(TimeUnit::milliseconds);
  return RecordTable<ServedModel>({
      {"model", "model", words(), [](const auto& each) { return each.name; }},
      {"own_time", "own time", time, [](const auto& each) { return each.whole; }},
      {"segments", "segments", count(),
       [](const auto& each) { return std::max<std::size_t>(each.segments.size(), 1); }},
      {"longest_segment", "longest", time,
       [](const auto& each) {
         return each.can_be_cut() ? *std::ranges::max_element(each.segments) : each.whole;
       }},
      {"objective", "objective", time,
       [](const auto& each) {
         return each.service.objective ? Json(*each.service.objective) : Json();
       }},
  });
}

Json sweep_json(const LoadSweep& sweep, bool deadlines) {
  Json points = Json::array();
  for (const LoadPoint& point : sweep.points) {
    points.push_back(
        {{"load", point.load}, {"models", summary_table(deadlines).json(point.summaries)}});
  }
  return {{"largest_load", sweep.largest_load ? Json(*sweep.largest_load) : Json()},
          {"points", std::move(points)}};
}

std::string largest_load_text(const LoadSweep& sweep) {
  if (!sweep.largest_load) return "";
  if (*sweep.largest_load <= 0)
    return "the latency objectives are not met at any load of 0.1 or more\n";
  return fmt::format("the latency objectives are met up to a load of {:g}\n", *sweep.largest_load);
}

}  // namespace

std::vector<double> rates_of(const std::vector<std::string>& texts,
                             std::vector<ServedModel>& models) {
  std::vector<double> rates(models.size(), 0);
  for (const std::string& text : texts) {
    const auto [name, value] = model_value(text);
    const double rate = parse_number("--rate", value, NumberRange<double>{1e-6, 1e9});
    for (const ServedModel* model : models_named(models, "--rate", name)) {
      rates[static_cast<std::size_t>(model - models.data())] = rate;
    }
  }
  return rates;
}

ExitCode simulate_serving(const ServeSimulationOptions& options) {
  if (!options.trace.empty() && !options.rates.empty()) {
    throw UsageError("--simulate and --rate: give a trace or rates, not both");
  }
  ServedLoad served = options.trace.empty() ? load_of_rates(options) : load_of_trace(options);
  options.service.apply(served.models);
  const SchedulerOptions& scheduler = options.service.scheduler;
  const ServiceSimulation run = simulate_service(served.models, scheduler, served.arrivals);
  const auto summaries = summaries_of(served.models, served.arrivals, run);
  const bool deadlines = summaries.back().in_time.has_value();
  const LoadSweep sweep = sweep_loads(served.models, scheduler, served.arrivals);
  const double load = load_of(served.models, served.arrivals);
  const double busy = run.duration > 0 ? run.busy / run.duration : 0;
  if (options.output.json) {
    print_json({{"policy", name_of(scheduler.policy)},
                {"load", load},
                {"busy", busy},
                {"served", model_table().json(served.models)},
                {"models", summary_table(deadlines).json(summaries)},
                {"sweep", sweep_json(sweep, deadlines)}});
  } else if (!options.output.quiet) {
    fmt::print("{}\n{}\nload {:.3g}, cores busy for {} of {}\n{}",
               model_table().text(served.models), summary_table(deadlines).text(summaries), load,
               percent_text(busy), duration_text(run.duration / 1000), largest_load_text(sweep));
  }
  if (!options.chart.empty()) {
    write_whole(options.chart, svg_text(load_charts(sweep, "Latency against load")));
  }
  return ExitCode::success;
}

}  // namespace placewright::cli
