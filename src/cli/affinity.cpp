#include "analysis/affinity.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/problem_file.h"
#include "formats/speedup_table.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright affinity examples/talos/two_chains.json\n"
    "  placewright affinity bert.json resnet.json vgg.json --cluster devices.json\n"
    "  placewright affinity examples/talos/speedups/*.csv --json";

struct AffinityOptions {
  std::vector<std::string> paths;
  std::string cluster;
  OutputOptions output;
};

using Matrix = std::vector<std::vector<std::optional<double>>>;

bool is_table(const std::string& path) {
  return path.size() > 4 && path.compare(path.size() - 4, 4, ".csv") == 0;
}

std::vector<SpeedUpProfile> read_profiles(const AffinityOptions& options) {
  std::vector<SpeedUpProfile> profiles;
  for (const std::string& path : options.paths) {
    if (is_table(path)) {
      const SpeedUpTable table = read_speed_up_table(path);
      SpeedUpProfile& profile = profiles.emplace_back();
      profile.name = table.name;
      for (const SpeedUpRow& row : table.rows) {
        profile.speed_ups.push_back(row.speed_up);
        profile.types.push_back(row.type);
      }
      continue;
    }
    ReadOptions reading;
    reading.objective = Objective::total_completion;
    reading.cluster = options.cluster;
    ProblemFile file = read_problem(path, reading);
    options.output.warn(file.warnings);
    for (SpeedUpProfile& profile : speed_up_profiles(build_problem(std::move(file)))) {
      profiles.push_back(std::move(profile));
    }
  }
  return profiles;
}

// The model with the largest affinity; nullopt if none is comparable.
std::optional<std::size_t> best_partner(const Matrix& matrix, std::size_t model) {
  std::optional<std::size_t> best;
  for (std::size_t other = 0; other < matrix.size(); ++other) {
    if (other == model || !matrix[model][other]) continue;
    if (!best || *matrix[model][other] > *matrix[model][*best]) best = other;
  }
  return best;
}

void print_text(const std::vector<SpeedUpProfile>& models, const Matrix& matrix) {
  std::vector<Column> columns = {{"model"}, {"ops", Align::right}};
  for (const SpeedUpProfile& model : models) columns.push_back({model.name, Align::right});
  columns.push_back({"best with"});
  TextTable table(columns);
  for (std::size_t i = 0; i < models.size(); ++i) {
    std::vector<std::string> cells = {models[i].name,
                                      fmt::format("{}", models[i].speed_ups.size())};
    for (std::size_t j = 0; j < models.size(); ++j) {
      cells.push_back(matrix[i][j] ? fmt::format("{:.6g}", *matrix[i][j]) : "-");
    }
    const auto partner = best_partner(matrix, i);
    cells.push_back(partner ? models[*partner].name : "-");
    table.add(cells);
  }
  fmt::print(
      "{}\n"
      "A large value means that one model gains from an accelerator where the other does not, so "
      "that\n"
      "together they keep all devices busy. '-' means that two models have no type of op in "
      "common.\n",
      table.text());
}

void print_document(const std::vector<SpeedUpProfile>& models, const Matrix& matrix) {
  Json document = {{"models", Json::array()}, {"affinity", Json::array()}};
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto partner = best_partner(matrix, i);
    document["models"].push_back({{"name", models[i].name},
                                  {"ops", models[i].speed_ups.size()},
                                  {"best_with", partner ? Json(models[*partner].name) : Json()}});
    Json row = Json::array();
    for (const auto& entry : matrix[i]) {
      row.push_back(entry ? finite_or_null(*entry) : Json());
    }
    document["affinity"].push_back(std::move(row));
  }
  print_json(document);
}

ExitCode affinity_verb(const AffinityOptions& options) {
  const std::vector<SpeedUpProfile> models = read_profiles(options);
  const Matrix matrix = affinity_matrix(models);
  if (options.output.json) {
    print_document(models, matrix);
  } else if (!options.output.quiet) {
    print_text(models, matrix);
  }
  return ExitCode::success;
}

}  // namespace

void add_affinity(CLI::App& program, Action& action) {
  CLI::App* verb =
      program.add_subcommand("affinity", "Show which models complement each other on one machine");
  const auto options = std::make_shared<AffinityOptions>();
  verb->add_option("models", options->paths, "Problem files, or tables of speed-ups (.csv)")
      ->required()
      ->type_name("FILE");
  verb->add_option("--cluster", options->cluster,
                   "Take the devices from this file, where the model files have none")
      ->type_name("FILE");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return affinity_verb(*options); }; });
}

}  // namespace placewright::cli
