#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "analysis/generate.h"
#include "cli/exit_code.h"
#include "cli/interruption.h"
#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/status_line.h"
#include "cli/verbs.h"
#include "formats/event_file.h"
#include "formats/input_error.h"
#include "formats/plan_rows.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "planners/learned/training.h"
#include "report/training_page.h"

namespace placewright::cli {
namespace {

using learned::Training;
using learned::TrainingOptions;
using learned::TrainingRow;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright train inception.json resnet.json -o policy.pw --episodes 2000\n"
    "  placewright train --generate inception=20 --generate layered=20 -o policy.pw --log c.csv\n"
    "  placewright train *.json -o policy.pw --resume        after a stop or a crash\n"
    "  placewright plan bert.json --planner hsdag --option policy=policy.pw\n"
    "\n"
    "The state is written to FILE.checkpoint every --checkpoint seconds; --resume continues from\n"
    "there. Ctrl-C ends the training and writes the policy as it is.";

struct TrainOptions {
  std::vector<std::string> paths;
  std::vector<std::string> families;  // NAME=COUNT
  std::uint64_t ops = 100;
  std::uint64_t devices = 3;
  std::uint64_t samples = 64;
  std::uint64_t channels = 64;
  TrainingOptions training;
  int threads = 1;
  double checkpoint_seconds = 30;
  bool resume = false;
  std::string path;
  std::string log;
  std::string events;
  std::string page;
  OutputOptions output;
};

void generate_family(const std::string& text, const TrainOptions& options,
                     std::vector<Problem>& problems) {
  const std::size_t split = text.find('=');
  const auto family = value_named<GraphFamily>(text.substr(0, split));
  std::size_t count = 0;
  if (split != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + split + 1, end, count);
    if (error != std::errc{} || stop != end) count = 0;
  }
  if (!family || count == 0) {
    throw UsageError(fmt::format(
        "--generate: expected FAMILY=COUNT with a family of 'placewright generate', found '{}'",
        text));
  }
  for (std::size_t i = 0; i < count; ++i) {
    GenerateOptions made;
    made.family = *family;
    made.seed = options.training.learner.seed * 1000 + i;
    // Sizes from half to one and a half times --ops, devices from two on.
    made.ops = std::max<std::size_t>(4, options.ops / 2 + options.ops * i / count);
    made.devices = 2 + i % std::max<std::size_t>(1, options.devices - 1);
    made.kinds = made.devices;
    problems.emplace_back(generate(made));
  }
}

std::vector<Problem> problems_of(const TrainOptions& options) {
  std::vector<Problem> problems;
  for (const std::string& path : options.paths) {
    ProblemFile file = read_problem(path);
    options.output.warn(file.warnings);
    problems.push_back(build_problem(std::move(file)));
  }
  for (const std::string& family : options.families) generate_family(family, options, problems);
  if (problems.empty())
    throw UsageError("no problem to train on: give problem files or --generate");
  return problems;
}

// The rows of the training so far, as files.
class Curves {
 public:
  explicit Curves(const TrainOptions& options) : options_(options) {}

  void add(const TrainingRow& row) { rows_.push_back(row); }

  // A resumed training goes on with the curves that it had.
  void read_before(std::uint64_t episode) {
    if (options_.log.empty() || !std::filesystem::exists(options_.log)) return;
    std::istringstream lines(read_whole(options_.log));
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      std::istringstream cells(line);
      TrainingRow row;
      char comma = 0;
      cells >> row.episode >> comma >> row.reward >> comma >> row.best >> comma >> row.bound >>
          comma >> row.entropy >> comma >> row.seconds >> comma;
      std::getline(cells, row.problem);
      if (cells && row.episode <= episode) rows_.push_back(row);
    }
  }

  void write(double wall_time) const {
    if (!options_.log.empty()) write_whole(options_.log, csv());
    if (!options_.events.empty()) {
      std::filesystem::create_directories(options_.events);
      write_whole(
          (std::filesystem::path(options_.events) / "events.out.tfevents.0.placewright").string(),
          events(wall_time));
    }
    if (!options_.page.empty()) write_whole(options_.page, page());
  }

 private:
  [[nodiscard]] std::string csv() const {
    std::string text = "episode,reward,best,bound,entropy,seconds,problem\n";
    for (const TrainingRow& row : rows_) {
      text += fmt::format("{},{},{},{},{},{:.3f},{}\n", row.episode, row.reward, row.best,
                          row.bound, row.entropy, row.seconds, csv_field(row.problem));
    }
    return text;
  }

  [[nodiscard]] std::string events(double wall_time) const {
    std::string file = event_file_header(wall_time);
    for (const TrainingRow& row : rows_) {
      const std::array<std::pair<std::string_view, float>, 3> scalars{
          {{"reward", static_cast<float>(row.reward)},
           {"best over bound", static_cast<float>(row.bound > 0 ? row.best / row.bound : 0)},
           {"entropy", static_cast<float>(row.entropy)}}};
      file +=
          scalar_event(wall_time + row.seconds, static_cast<std::int64_t>(row.episode), scalars);
    }
    return file;
  }

  [[nodiscard]] std::string page() const {
    std::vector<TrainingPoint> points;
    for (const TrainingRow& row : rows_) {
      points.push_back({static_cast<double>(row.episode), row.reward,
                        row.bound > 0 ? row.best / row.bound : 0, row.entropy});
    }
    return training_page(fmt::format("Training of {}", options_.path), points);
  }

  const TrainOptions& options_;
  std::vector<TrainingRow> rows_;
};

void resume(Training& training, Curves& curves, const std::string& checkpoint) {
  if (!std::filesystem::exists(checkpoint)) return;
  try {
    training.resume(learned::decode(read_whole(checkpoint)));
  } catch (const std::invalid_argument& error) {
    throw InputError(checkpoint, "", error.what());
  }
  curves.read_before(training.episode());
}

void show(StatusLine& status, const Training& training, const TrainingRow& row,
          std::uint64_t episodes) {
  status.show(fmt::format(
      "episode {} of {}  {}  reward {:.3f}  best/bound {:.3f}  entropy {:.3f}  "
      "{:.1f} graphs/s  {:.0f} placements/s",
      row.episode, episodes, row.problem, row.reward, row.bound > 0 ? row.best / row.bound : 0,
      row.entropy, static_cast<double>(row.episode) / std::max(1e-9, row.seconds),
      static_cast<double>(training.placements()) / std::max(1e-9, row.seconds)));
}

ExitCode train(const TrainOptions& options) {
  if (const std::string reason = learned::why_no_plugin(); !reason.empty()) {
    throw InputError(options.path, "", reason);
  }
  const std::vector<Problem> problems = problems_of(options);
  const std::string checkpoint = options.path + ".checkpoint";
  const Interruption interruption;
  Control control("train", Budget{.seconds = kInfinity, .threads = options.threads},
                  interruption.flag());
  Training training(problems, options.training, control);
  Curves curves(options);
  if (options.resume) resume(training, curves, checkpoint);
  const double wall_time =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  double saved = control.elapsed();
  {
    StatusLine status(!options.output.quiet);
    while (!training.done() && !control.interrupted()) {
      const TrainingRow row = training.step();
      curves.add(row);
      show(status, training, row, options.training.episodes);
      if (control.elapsed() - saved < options.checkpoint_seconds) continue;
      saved = control.elapsed();
      // The curves first: resuming leaves out what is newer than the checkpoint, and cannot make up
      // for what is missing.
      curves.write(wall_time);
      write_whole(checkpoint, encode(training.policy(Training::State::included)));
    }
  }
  curves.write(wall_time);
  write_whole(options.path, encode(training.policy(Training::State::left_out)));
  if (training.done()) {
    std::filesystem::remove(checkpoint);
  } else {
    write_whole(checkpoint, encode(training.policy(Training::State::included)));
  }
  if (options.output.json) {
    print_json({{"policy", options.path},
                {"episodes", training.episode()},
                {"problems", training.problem_count()},
                {"placements", training.placements()},
                {"seconds", control.elapsed()}});
  } else if (!options.output.quiet) {
    fmt::print("{}: {} episodes on {} problems, {} placements in {:.1f} s\n", options.path,
               training.episode(), training.problem_count(), training.placements(),
               control.elapsed());
  }
  return ExitCode::success;
}

}  // namespace

void add_train(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("train", "Train a policy for the planner 'hsdag' on many problems");
  const auto options = std::make_shared<TrainOptions>();
  verb->add_option("problems", options->paths, "Problems to train on")->type_name("FILE");
  verb->add_option("--generate", options->families,
                   "Train on this many generated problems of this family; repeatable")
      ->type_name("FAMILY=COUNT");
  add_number(*verb, "--ops", options->ops, {4, 1'000'000},
             "Mean number of ops of generated problems");
  add_number(*verb, "--devices", options->devices, {2, 1024},
             "Largest number of devices of generated problems");
  add_number(*verb, "--episodes", options->training.episodes, {1, 1'000'000'000},
             "Number of episodes");
  add_number(*verb, "--samples", options->samples, {1, 1'000'000}, "Placements in each episode");
  add_number(*verb, "--channels", options->channels, {1, 4096}, "Width of the network");
  add_number(*verb, "--learning-rate", options->training.learner.learning_rate, {1e-9, 10},
             "Learning rate of the optimiser Adam");
  add_number(*verb, "--imitation", options->training.learner.imitation, {0, 10},
             "Weight of imitating a problem's best known placement, beside the rewards");
  add_number(*verb, "--seed", options->training.learner.seed, kAnySeed,
             "Seed of every random choice");
  add_number(*verb, "--threads", options->threads, {1, 1024}, "Threads");
  add_number(*verb, "--checkpoint", options->checkpoint_seconds, {0, kLargestReal},
             "Seconds between two checkpoints");
  verb->add_flag("--resume", options->resume, "Continue from the checkpoint, if there is one");
  options->output.add_to(*verb);
  add_written(*verb, "-o,--output", options->path, "Write the policy to this file")->required();
  add_written(*verb, "--log", options->log, "Write the curves as CSV");
  add_written(*verb, "--events", options->events,
              "Write the curves for TensorBoard into this folder");
  add_written(*verb, "--page", options->page, "Write the curves as an HTML page");
  verb->footer(kExamples);
  verb->callback([&action, options] {
    options->training.learner.samples = static_cast<std::int64_t>(options->samples);
    options->training.learner.channels = static_cast<std::int64_t>(options->channels);
    action = [options] { return train(*options); };
  });
}

}  // namespace placewright::cli
