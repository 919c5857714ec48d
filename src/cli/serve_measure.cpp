#include "cli/serve_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/inputs.h"
#include "cli/interruption.h"
#include "cli/model_problem.h"
#include "cli/number_option.h"
#include "cli/record_table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "formats/printable.h"
#include "formats/text_file.h"
#include "serving/model_service.h"
#include "serving/simulation.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWarmUp = 5;  // requests of each model that do not count
constexpr std::size_t kMostRequests = 10'000'000;

// A request with made-up values, which every request of the model sends.
struct MadeRequest {
  InferenceCall call;
  std::vector<HostBuffer> values;
};

MadeRequest made_request(const ServedVersion& version, std::uint64_t seed) {
  MadeRequest made;
  made.call.model = version.name;
  for (const GraphInput& input : version.graph.inputs) {
    const HostBuffer& value = made.values.emplace_back(seeded_input(input, seed));
    made.call.inputs.push_back(
        {.name = input.name,
         .datatype = std::string(datatype_of(input.type.element)),
         .shape = {input.type.shape.begin(), input.type.shape.end()},
         .data = value.bytes().first(static_cast<std::size_t>(input.type.bytes))});
  }
  return made;
}

ServerSettings settings_for(const ServeSimulationOptions& simulation,
                            const ServeStartOptions& start) {
  const SchedulerOptions& scheduler = simulation.service.scheduler;
  ServerSettings settings;
  settings.models = simulation.models;
  settings.shapes = start.model.shapes;
  settings.precision = start.model.precision.value_or(Precision::by_default);
  settings.cache = cache_folder();
  settings.policy = scheduler.policy;
  settings.late = scheduler.late;
  settings.ageing = scheduler.ageing;
  settings.share = scheduler.share;
  settings.classes = classes_of(simulation.service);
  return settings;
}

struct Served {
  std::vector<std::shared_ptr<ServedVersion>> versions;
  std::vector<ServedModel> models;  // alike, as they were measured
};

Served served_by(const ModelService& service, const ServerSettings& settings) {
  Served served;
  for (const std::string& path : settings.models) {
    const auto& version = served.versions.emplace_back(service.find(model_name_of(path), ""));
    const ModelCuts& cuts = version->cuts;
    served.models.push_back({.name = version->name,
                             .whole = cuts.whole,
                             .segments = cuts.times,
                             .batches = cuts.batches,
                             .on_half = cuts.on_half,
                             .service = class_of(settings, version->name)});
  }
  return served;
}

std::vector<RequestArrival> arrivals_for(std::vector<ServedModel>& models,
                                         const ServeSimulationOptions& simulation,
                                         const ServeMeasureOptions& options, double seconds) {
  const std::vector<double> rates = rates_of(simulation.rates, models);
  double a_second = 0;  // requests
  double work = 0;      // seconds of work that a second brings
  for (std::size_t model = 0; model < models.size(); ++model) {
    a_second += rates[model];
    work += rates[model] * models[model].whole / 1000;
  }
  const double faster = options.load ? *options.load / work : 1;
  const double count = std::ceil(a_second * faster * seconds);
  if (count > static_cast<double>(kMostRequests)) {
    throw UsageError(
        fmt::format("--measure: this makes {:.3g} requests, the most is {}", count, kMostRequests));
  }
  std::vector<double> scaled = rates;
  for (double& rate : scaled) rate *= faster;
  return poisson_arrivals(scaled, static_cast<std::size_t>(count), simulation.seed);
}

void warm_up(ModelService& service, const std::vector<MadeRequest>& requests) {
  for (const MadeRequest& request : requests) {
    for (int run = 0; run < kWarmUp; ++run) {
      std::latch told(1);
      service.infer(request.call,
                    [&](const ServedVersion&, const InferenceAnswer&) { told.count_down(); });
      told.wait();
    }
  }
}

// Sends each request at its moment, whether or not others have been answered. Latencies count from
// that moment. Stops sending when interrupted; `arrivals` then ends where it stopped.
ServiceSimulation replay(ModelService& service, const std::vector<MadeRequest>& requests,
                         std::vector<RequestArrival>& arrivals) {
  const Interruption interruption;
  ServiceSimulation run;
  run.requests.resize(arrivals.size());
  const Clock::time_point begin = Clock::now();
  std::size_t sent = 0;
  for (; sent < arrivals.size() && !interruption.flag()->load(); ++sent) {
    const RequestArrival& arrival = arrivals[sent];
    std::this_thread::sleep_until(begin +
                                  std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double, std::milli>(arrival.time)));
    service.infer(requests[arrival.model].call,
                  [&, sent](const ServedVersion& version, const InferenceAnswer& answer) {
                    if (answer.kind == AnswerKind::failed) {
                      tell(fmt::format("placewright: {}: {}\n", printable(version.name),
                                       printable(answer.message)));
                    }
                    SimulatedRequest& request = run.requests[sent];
                    request.end = milliseconds(Clock::now() - begin);
                    request.fate = answer.kind == AnswerKind::done      ? RequestFate::complete
                                   : answer.kind == AnswerKind::refused ? RequestFate::refused
                                                                        : RequestFate::cancelled;
                  });
  }
  service.drain();
  run.duration = milliseconds(Clock::now() - begin);
  arrivals.resize(sent);
  run.requests.resize(sent);
  return run;
}

struct MeasuredService {
  ServiceSummary measured;
  ServiceSummary predicted;
};

RecordTable<MeasuredService> measured_table() {
  const Style time = time_in(TimeUnit::milliseconds);
  return RecordTable<MeasuredService>({
      {"model", "model", words(), [](const auto& each) { return each.measured.model; }},
      {"requests", "requests", count(), [](const auto& each) { return each.measured.requests; }},
      {"answered", "answered", count(), [](const auto& each) { return each.measured.answered; }},
      {"mean", "mean", time, [](const auto& each) { return each.measured.mean; }},
      {"p50", "p50", time, [](const auto& each) { return each.measured.p50; }},
      {"p95", "p95", time, [](const auto& each) { return each.measured.p95; }},
      {"p99", "p99", time, [](const auto& each) { return each.measured.p99; }},
      {"predicted_p99", "predicted p99", time, [](const auto& each) { return each.predicted.p99; }},
      {"times_own", "x own time", number("{:.3g}"),
       [](const auto& each) { return each.measured.normalised; }},
  });
}

}  // namespace

void ServeMeasureOptions::add_to(CLI::App& verb) {
  add_duration(verb, "--measure", duration,
               "Serve the requests of --rate in this process for this long, and show their "
               "latencies beside the predicted ones");
  add_number(verb, "--load", load, {0.001, 10},
             "--measure: multiply the rates so that the requests take this share of the time");
}

ExitCode measure_serving(const ServeSimulationOptions& simulation, const ServeStartOptions& start,
                         const ServeMeasureOptions& options) {
  const double seconds = parse_duration("--measure", options.duration);
  if (simulation.rates.empty() || !simulation.trace.empty() || !simulation.chart.empty()) {
    throw UsageError("--measure needs --rate, and takes neither --simulate nor --chart");
  }
  require_models(simulation.models, "");
  const ServerSettings settings = settings_for(simulation, start);
  const bool quiet = simulation.output.quiet;
  ModelService service(settings, [quiet](const std::string& line) {
    if (!quiet) tell(fmt::format("placewright: {}\n", printable(line)));
  });
  service.load_all();
  Served served = served_by(service, settings);
  std::vector<RequestArrival> arrivals = arrivals_for(served.models, simulation, options, seconds);
  std::vector<MadeRequest> requests;
  for (const auto& version : served.versions) {
    requests.push_back(made_request(*version, simulation.seed));
  }
  warm_up(service, requests);
  const ServiceSimulation run = replay(service, requests, arrivals);
  const ServiceSimulation predicted =
      simulate_service(served.models, simulation.service.scheduler, arrivals);
  const auto measured = summaries_of(served.models, arrivals, run);
  const auto expected = summaries_of(served.models, arrivals, predicted);
  std::vector<MeasuredService> rows;
  for (std::size_t row = 0; row < measured.size(); ++row) {
    rows.push_back({measured[row], expected[row]});
  }
  const double load = load_of(served.models, arrivals);
  if (simulation.output.json) {
    print_json({{"policy", name_of(simulation.service.scheduler.policy)},
                {"load", load},
                {"seconds", run.duration / 1000},
                {"measured", measured_table().json(rows)}});
  } else if (!quiet) {
    fmt::print("{}\nload {:.3g}, policy {}, {}\n", measured_table().text(rows), load,
               name_of(simulation.service.scheduler.policy), duration_text(run.duration / 1000));
  }
  return arrivals.empty() ? ExitCode::no : ExitCode::success;
}

}  // namespace placewright::cli
