#include <memory>

#include "cli/number_option.h"
#include "cli/repeated_option.h"
#include "cli/serve_config.h"
#include "cli/serve_measure.h"
#include "cli/serve_simulation.h"
#include "cli/serve_start.h"
#include "cli/verbs.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright serve squeezenet.xml resnet50.xml\n"
    "  placewright serve --config serve.json\n"
    "  placewright serve --folder models --grpc 0.0.0.0:8001 --token token.txt --objective 50ms\n"
    "  placewright serve squeezenet.json resnet50.json --rate squeezenet=60 --rate resnet50=30\n"
    "  placewright serve squeezenet.xml resnet50.xml --rate 10 --load 0.6 --measure 10s\n"
    "  placewright serve --simulate arrivals.json --objective 50ms --chart load.svg";

struct ServeOptions {
  std::string config;
  ServeSimulationOptions simulation;
  ServeStartOptions start;
  ServeMeasureOptions measure;
};

ExitCode serve(const ServeOptions& options) {
  const ServeSimulationOptions& simulation = options.simulation;
  if (!options.measure.duration.empty()) {
    return measure_serving(simulation, options.start, options.measure);
  }
  if (options.measure.load) throw UsageError("--load needs --measure");
  if (!simulation.trace.empty() || !simulation.rates.empty()) {
    ServeSimulationOptions measured = simulation;
    measured.model = options.start.model;
    return simulate_serving(measured);
  }
  return start_serving(simulation.models, simulation.service, options.start);
}

}  // namespace

void add_serve(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "serve", "Serve several models on one machine within their latency objectives");
  const auto options = std::make_shared<ServeOptions>();
  ServeSimulationOptions& simulation = options->simulation;
  verb->add_option("models", simulation.models,
                   "Model files; to predict (--rate, --simulate) also problem files, which state "
                   "the models' times")
      ->type_name("FILE");
  options->start.add_to(*verb);
  simulation.service.add_to(*verb);
  verb->add_option(
          "--simulate", simulation.trace,
          "Predict latencies for these arrivals: a trace, or CSV with the columns time and model")
      ->type_name("FILE");
  add_repeated(*verb, "--rate", simulation.rates, "[MODEL=]N",
               "Predict latencies for this many requests per second");
  add_number(*verb, "--requests", simulation.requests, {1, 10'000'000},
             "--rate: number of requests to predict");
  add_number(*verb, "--seed", simulation.seed, kAnySeed, "--rate: seed of the arrivals");
  options->measure.add_to(*verb);
  add_written(*verb, "--chart", simulation.chart,
              "Draw predicted latency against load into this SVG file");
  simulation.output.add_to(*verb);
  verb->footer(kExamples);
  verb->add_option("--config", options->config,
                   "Read models and options from this JSON file; flags on the command line win")
      ->type_name("FILE");
  verb->callback([&action, options, verb] {
    action = [options, verb] {
      if (!options->config.empty()) {
        apply_config(options->config, *verb, options->simulation, options->start);
      }
      return serve(*options);
    };
  });
}

}  // namespace placewright::cli
