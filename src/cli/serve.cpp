#include <memory>

#include "cli/number_option.h"
#include "cli/repeated_option.h"
#include "cli/serve_simulation.h"
#include "cli/verbs.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright serve squeezenet.json resnet50.json --rate squeezenet=60 --rate resnet50=30\n"
    "  placewright serve --simulate arrivals.json --objective 50ms --chart load.svg\n"
    "  placewright serve squeezenet.json resnet50.json --simulate arrivals.csv --json";

ExitCode serve(const ServeSimulationOptions& options) {
  if (options.trace.empty() && options.rates.empty()) {
    throw UsageError("give --simulate or --rate");
  }
  return simulate_serving(options);
}

}  // namespace

void add_serve(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("serve", "Several models on one machine, with a latency that holds");
  const auto options = std::make_shared<ServeSimulationOptions>();
  verb->add_option("models", options->models, "Problem files that state the models' times")
      ->type_name("FILE");
  verb->add_option("--simulate", options->trace,
                   "Predict what these arrivals meet with: a trace, or CSV with time and model")
      ->type_name("FILE");
  add_repeated(*verb, "--rate", options->rates, "[MODEL=]N",
               "Predict what so many requests a second meet with");
  add_number(*verb, "--requests", options->requests, {1, 10'000'000}, "How many, with --rate");
  add_number(*verb, "--seed", options->seed, kAnySeed, "Seed of the arrivals, with --rate");
  options->service.add_to(*verb);
  add_written(*verb, "--chart", options->chart, "Draw latency against load (SVG)");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return serve(*options); }; });
}

}  // namespace placewright::cli
