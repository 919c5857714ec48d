#include "backends/import.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "backends/runtime.h"
#include "backends/target_devices.h"
#include "cli/device_options.h"
#include "cli/model_problem.h"
#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "machine/target_cluster.h"
#include "problem/join.h"
#include "problem/stated_precision.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright import examples/moirai/GoogLeNet.json -o googlenet.json\n"
    "  placewright import graph.json --format msr --objective call-latency -o -\n"
    "  placewright import model.onnx --shape image=1x3x224x224 --device cpu:0 --device cpu:1 -o "
    "model.json\n"
    "  placewright import PROFILES --format sailor --model OPT-350 --batch 1024 --node GH-96=8 -o "
    "cluster.json\n"
    "\n"
    "For a model (.xml, .onnx, .pb, .tflite, .pdmodel) the times are estimates, for the devices "
    "of\n"
    "--device or --cluster; 'placewright profile' measures them instead.";

constexpr const char* kSailor = "sailor";

struct ImportOptions {
  ProblemOptions problem{.other_formats = {kSailor}};
  SailorOptions sailor;
  OutputOptions output;
  std::string path = "-";
};

// What a model's problem file refers to lies beside it, wherever the two are moved.
std::string folder_of(const std::string& path) {
  if (path == "-") return {};
  const auto folder = std::filesystem::absolute(path).parent_path();
  return folder.string();
}

ProblemDraft imported(const ImportOptions& options) {
  options.problem.check();
  const BackendEntry& backend = *backend_reading(options.problem.path);
  const std::vector<Target> targets = options.problem.devices.targets(backend);
  const std::vector<ModelFile> files =
      with_fixed_shapes(options.problem.model_files(), options.output.quiet);
  const Cluster cluster = cluster_of_targets(targets, devices_of(targets));
  std::vector<PeakRates> rates;
  for (const std::size_t device : first_of_each_kind(cluster)) {
    rates.push_back(usual_rates(targets[device]));
  }
  std::vector<ProblemDraft> drafts;
  for (const ModelFile& file : files) {
    const auto model = read_model(runtime_named(backend.name), file);
    drafts.push_back(draft_of(model->graph(), model_name_of(file.path),
                              source_of(file.path, file.shapes, folder_of(options.path))));
    estimate_times(drafts.back(), model->graph(), cluster, rates);
    state_precision(drafts.back(), file.precision);
    keep_folded_together(drafts.back(), model->graph());
  }
  ProblemDraft draft = joined(std::move(drafts));
  if (files.size() > 1) draft = with_objective(std::move(draft), Objective::total_completion);
  if (options.problem.objective) {
    draft = with_objective(std::move(draft), *options.problem.objective);
  }
  options.problem.apply_to(draft);
  return draft;
}

ExitCode import_model(const ImportOptions& options) {
  ProblemDraft draft = imported(options);
  const std::string text = write_problem(draft);
  ProblemFile file;
  file.file = input_name(options.problem.path);
  const Problem problem = build_problem(std::move(draft), file);
  write_whole(options.path, text);
  if (!options.output.quiet && options.path != "-") {
    fmt::print("{}: {} ops on {} devices, times estimated\n", options.path, problem.op_count(),
               problem.device_count());
  }
  return ExitCode::success;
}

ExitCode import(const ImportOptions& options) {
  if (options.problem.format == kSailor) {
    return import_sailor(options.problem.path, options.sailor, options.path, options.output);
  }
  const bool on_this_machine = options.problem.cluster.empty();
  if (options.problem.names_models() && on_this_machine) return import_model(options);
  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  const std::string text = write_problem(file.draft);
  const std::string format = file.format;
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
  CLI::App* verb =
      program.add_subcommand("import", "Convert a model or problem to Placewright's own format");
  const auto options = std::make_shared<ImportOptions>();
  options->problem.add_argument_to(*verb);
  options->sailor.add_to(*verb);
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path, "Write to this file; - is standard output")
      ->capture_default_str();
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return import(*options); }; });
}

}  // namespace placewright::cli
