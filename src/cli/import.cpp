#include <memory>

#include <fmt/format.h>

#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright import examples/moirai/GoogLeNet.json -o googlenet.json\n"
    "  placewright import graph.json --format msr --objective call-latency -o -";

struct ImportOptions {
  ProblemOptions problem;
  OutputOptions output;
  std::string path;
};

ExitCode import(const ImportOptions& options) {
  ProblemFile file = options.problem.read();
  options.output.warn(file.warnings);
  const std::string text = write_problem(file.draft);
  const std::string format{name_of(file.format)};
  // A file that no planner could use is not written.
  const Problem problem = build_problem(std::move(file));
  write_whole(options.path, text);
  if (!options.output.quiet && options.path != "-") {
    fmt::print("{}: {} ops on {} devices, read as {}\n", options.path, problem.op_count(),
               problem.device_count(), format);
  }
  return ExitCode::success;
}

}  // namespace

void add_import(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("import", "Convert a model or problem to our own format");
  const auto options = std::make_shared<ImportOptions>();
  options->problem.add_argument_to(*verb);
  options->output.add_to(*verb);
  verb->add_option("-o,--output", options->path, "Where to write it; - is standard output")
      ->required()
      ->type_name("FILE")
      ->group("Output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return import(*options); }; });
}

}  // namespace placewright::cli
