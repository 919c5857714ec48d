#include "profiling/profile.h"

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/choice_option.h"
#include "cli/device_options.h"
#include "cli/interruption.h"
#include "cli/model_problem.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/profile_summary.h"
#include "cli/status_line.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright profile inception-v3.xml --device cpu:0 --device cpu:1 -o inception.json\n"
    "  placewright profile bert.onnx --shape ids=1x128 --shape mask=1x128 -o bert.json\n"
    "  placewright profile alexnet.xml bert.onnx --shape bert:ids=1x128 -o both.json\n"
    "  placewright profile alexnet.xml bert.xml resnet.xml --whole -o three.json\n"
    "\n"
    "Stop other programs before you measure. If one disturbs a measurement, the table, the file\n"
    "and a warning say so. With --strict the exit code is then 1, and nothing is written.";

struct ProfileOptions {
  std::vector<std::string> models;
  DeviceOptions devices;
  ModelOptions model_options;
  MeasuringOptions measuring;
  OutputOptions output;
  std::size_t repeat = 20;
  std::optional<Objective> objective;
  bool strict = false;
  bool whole = false;
  std::string path;
};

ProfileRequest request_of(const ProfileOptions& options) {
  ProfileRequest request;
  request.targets = options.devices.targets(backend_of_models(options.models));
  request.files =
      with_fixed_shapes(options.model_options.files(options.models), options.output.quiet);
  if (!options.path.empty() && options.path != "-") {
    request.folder = std::filesystem::absolute(options.path).parent_path().string();
  }
  request.measure.repeat = options.repeat;
  request.whole = options.whole;
  request.seconds = options.measuring.seconds;
  return request;
}

void print(const ProfileOptions& options, const Profile& profile) {
  if (options.output.json) {
    print_json(profile_json(profile));
  } else if (!options.output.quiet) {
    fmt::print("{}", profile_text(profile));
  }
}

ExitCode profile_models(const ProfileOptions& options) {
  ProfileRequest request = request_of(options);
  std::optional<Profile> profile;
  {
    const Interruption interruption;
    StatusLine status(!options.output.quiet);
    request.measure.stop = interruption.flag();
    request.measure.progress = [&](const std::string& what) { status.show(what); };
    profile = profile_models(request);
  }
  if (!profile) {
    tell("placewright: interrupted; nothing is written\n");
    return ExitCode::no;
  }
  if (options.objective) {
    profile->draft = with_objective(std::move(profile->draft), *options.objective);
  }
  const std::string text = write_problem(profile->draft);
  ProblemFile file;
  file.file = input_name(options.models.front());
  const Problem problem = build_problem(profile->draft, file);
  const bool kept = !options.strict || profile->doubts.empty();
  // First of all: a measurement takes minutes, and standard output may be full.
  if (kept && !options.path.empty()) write_whole(options.path, text);
  if (options.path != "-") print(options, *profile);
  options.output.warn(profile->notes);
  for (const std::string& doubt : profile->doubts) {
    options.output.warn({"not valid: " + doubt});
  }
  return kept ? ExitCode::success : ExitCode::no;
}

}  // namespace

void add_profile(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "profile", "Measure models on this machine's devices, and write a problem file");
  const auto options = std::make_shared<ProfileOptions>();
  verb->add_option("models", options->models, "Model files that a backend reads")
      ->required()
      ->type_name("FILE");
  options->devices.add_to(*verb);
  options->model_options.add_to(*verb);
  options->measuring.add_time_to(*verb);
  add_number(*verb, "--repeat", options->repeat, {1, 1000000},
             "Take this many undisturbed runs for each measurement");
  add_choice(*verb, "--objective", options->objective,
             "What plans minimise; default: latency, or total-completion with several models");
  verb->add_flag(
      "--whole", options->whole,
      "Measure whole models and no cuts, for plans that choose which cores a model gets");
  verb->add_flag("--strict", options->strict, "Write nothing where a measurement is not valid");
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path, "Write the problem here; - is standard output");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return profile_models(*options); }; });
}

}  // namespace placewright::cli
