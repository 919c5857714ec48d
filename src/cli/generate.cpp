#include "analysis/generate.h"

#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "cli/choice_option.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/verbs.h"
#include "formats/cluster_json.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "The same options and seed give the same file, byte for byte, on every machine.\n"
    "\n"
    "Examples:\n"
    "  placewright generate layered --ops 100 --devices 4 --seed 7 -o x.json\n"
    "  placewright generate layered --ops 100000 --edges 300000 --devices 64 -o big.json\n"
    "  placewright generate transformer --ops 600 --training --accelerators 6 --cores 1\n"
    "                       --objective throughput --memory-pressure 0.8 -o training.json\n"
    "  placewright generate inception --ops 100 --shared-cores 16 -o cores.json\n"
    "  placewright generate inception --ops 100 --shared-cores 16 --sockets 2 -o sockets.json\n"
    "  placewright generate inception --ops 100 --devices 1 --streams 4 -o gpu.json\n"
    "  placewright generate inception --ops 100 --accelerators 1 --streams 4\n"
    "                       --shared-cores 8 -o host-and-gpu.json\n"
    "  placewright generate inception --ops 200 --models 3 --objective total-completion |\n"
    "    placewright plan - --planner heft";

struct GenerateVerbOptions {
  GenerateOptions generate;
  OutputOptions output;
  std::string path = "-";
};

ProblemDraft generated(const GenerateVerbOptions& options) {
  const std::size_t devices = generated_device_count(options.generate);
  if (devices > kMostDevices) {
    throw UsageError(fmt::format(
        "the options ask for {} devices, with streams and sets of cores; the most is {}", devices,
        kMostDevices));
  }
  try {
    return generate(options.generate);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

ExitCode generate_problem(const GenerateVerbOptions& options) {
  ProblemDraft draft = generated(options);
  write_whole(options.path, write_problem(draft));
  if (options.output.quiet || options.path == "-") return ExitCode::success;
  const Problem problem(std::move(draft));
  fmt::print("{}: {} ops, {} edges, {} devices\n", options.path, problem.op_count(),
             problem.edge_count(), problem.device_count());
  return ExitCode::success;
}

void add_graph_options(CLI::App& verb, GenerateOptions& options) {
  const auto number = [&]<OptionNumber Number>(const char* flag, Number& value,
                                               NumberRange<Number> range, const char* help) {
    add_number(verb, flag, value, range, help)->group("Graph");
  };
  const NumberRange<std::size_t> counts{1, kMostGeneratedOps};
  number("--ops", options.ops, counts,
         "Number of ops of all models together, backward ops included");
  number("--models", options.models, counts, "Number of graphs, which arrive one after the other");
  verb.add_flag("--training", options.training, "Add a backward op for each forward op")
      ->group("Graph");
  number("--layers", options.layers, {0, kMostGeneratedOps},
         "layered: number of layers (0: the square root of the number of ops)");
  number("--edges", options.edges, {0, 100 * kMostGeneratedOps},
         "layered: edges of the forward graphs (0: use --density)");
  number("--density", options.density, {0, 1e6}, "layered: edges per op");
  number("--communication", options.communication, {0, 1e6},
         "Multiply the size of every tensor by this");
  number("--variation", options.variation, {0, 1},
         "How far op times differ from the mean of their role; 0 makes all layers of a transformer "
         "equal");
  number("--unsupported", options.unsupported, {0, 1},
         "Share of ops that some kinds of device cannot run");
  number("--seed", options.seed, kAnySeed, "Seed of every random choice");
}

void add_cluster_options(CLI::App& verb, GenerateOptions& options) {
  const auto count = [&](const char* flag, std::size_t& value, std::size_t least,
                         const char* help) {
    return add_number(verb, flag, value, {least, kMostDevices}, help)->group("Cluster");
  };
  CLI::Option* const devices =
      count("--devices", options.devices, 1, "Number of devices, joined by links");
  CLI::Option* const kinds =
      count("--kinds", options.kinds, 1, "Number of kinds of devices, each with its own speeds");
  CLI::Option* const others[] = {
      count("--accelerators", options.accelerators, 0,
            "Make a host interconnect with this many accelerators"),
      count("--cores", options.cores, 0, "Add this many CPU cores to the host interconnect"),
      count("--shared-cores", options.shared_cores, 0,
            "Make sets of this many cores (one, two, four, …, all) that share one memory")};
  // Those say which devices there are: a number of devices or kinds beside them would be ignored.
  for (CLI::Option* const other : others) other->excludes(devices, kinds);
  count("--sockets", options.sockets, 1,
        "Split the shared cores among this many memories, joined by links");
  count(
      "--streams", options.streams, 0,
      "Make each device a GPU with this many streams, which share its multiprocessors and memory");
  add_number(verb, "--memory-pressure", options.memory_pressure, {0, 1e6},
             "Bytes of all weights divided by the memory of all devices (0: no limit)")
      ->group("Cluster");
}

}  // namespace

void add_generate(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("generate", "Make a random problem of a chosen family and size");
  const auto options = std::make_shared<GenerateVerbOptions>();
  add_choice(*verb, "family", options->generate.family, "The family of graphs")
      ->required()
      ->default_str("");
  add_graph_options(*verb, options->generate);
  add_cluster_options(*verb, options->generate);
  add_choice(*verb, "--objective", options->generate.objective, "What plans minimise");
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path, "Write to this file; - is standard output")
      ->capture_default_str();
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return generate_problem(*options); }; });
}

}  // namespace placewright::cli
