#include "zoo/zoo.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "planning/sizes.h"
#include "planning/suggestion.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "'list' shows the models, 'make NAME...' writes NAME.xml and NAME.bin, which OpenVINO reads.\n"
    "The graphs are those of the published models; the weights come from the seed, so that times\n"
    "and memory are real and outputs mean nothing.\n"
    "\n"
    "Examples:\n"
    "  placewright zoo list\n"
    "  placewright zoo make inceptionv3 -o models\n"
    "  placewright zoo make tiny-bert tiny-branches --seed 7";

struct ZooOptions {
  std::string task;
  std::vector<std::string> names;
  std::string folder = ".";
  std::uint64_t seed = kZooSeed;
  OutputOptions output;
};

nlohmann::ordered_json tensor_json(const ZooTensor& tensor) {
  nlohmann::ordered_json document{
      {"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}};
  if (tensor.most > 0) {
    document["least"] = tensor.least;
    document["most"] = tensor.most;
  }
  return document;
}

nlohmann::ordered_json entry_json(const ZooEntry& entry) {
  nlohmann::ordered_json document{{"name", entry.name},
                                  {"title", entry.title},
                                  {"ops", entry.ops},
                                  {"parameters", entry.parameters},
                                  {"bytes", entry.bytes},
                                  {"inputs", nlohmann::ordered_json::array()},
                                  {"outputs", nlohmann::ordered_json::array()},
                                  {"source", entry.source},
                                  {"licence", entry.licence}};
  for (const auto& input : entry.inputs) document["inputs"].push_back(tensor_json(input));
  for (const auto& output : entry.outputs) document["outputs"].push_back(tensor_json(output));
  return document;
}

std::string inputs_text(const ZooEntry& entry) {
  std::vector<std::string> texts;
  for (const auto& input : entry.inputs) {
    texts.push_back(fmt::format("{} {}", input.name, fmt::join(input.shape, "x")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void print_table(bool with_details) {
  std::vector<Column> columns{
      {"model"}, {"ops", Align::right}, {"weights", Align::right}, {"what it is"}};
  if (with_details) columns.insert(columns.end(), {{"inputs"}, {"source"}, {"licence"}});
  TextTable table(columns);
  for (const ZooEntry& entry : zoo_entries()) {
    std::vector<std::string> cells{entry.name, fmt::format("{}", entry.ops),
                                   size_text(static_cast<double>(entry.bytes)), entry.title};
    if (with_details) {
      cells.insert(cells.end(), {inputs_text(entry), entry.source, entry.licence});
    }
    table.add(cells);
  }
  fmt::print("{}", table.text());
}

ExitCode list(const ZooOptions& options) {
  if (!options.names.empty()) {
    throw UsageError(fmt::format("'zoo list' takes no names, found '{}'", options.names.front()));
  }
  if (!options.output.json) {
    print_table(options.output.verbose);
    return ExitCode::success;
  }
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const auto& entry : zoo_entries()) document.push_back(entry_json(entry));
  print_json(document);
  return ExitCode::success;
}

// Before anything is written: one wrong name of several leaves nothing half done.
void check_names(const std::vector<std::string>& names) {
  if (names.empty())
    throw UsageError("'zoo make' needs the name of a model ('zoo list' shows them)");
  std::vector<std::string> known;
  for (const auto& entry : zoo_entries()) known.push_back(entry.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string hint = did_you_mean(name, known);
    throw UsageError(
        fmt::format("no model of the zoo is called '{}'{}", name,
                    hint.empty() ? fmt::format(" (known: {})", fmt::join(known, ", ")) : hint));
  }
}

ExitCode make(const ZooOptions& options) {
  check_names(options.names);
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const std::string& name : options.names) {
    const ZooFiles files = make_zoo_model(name, options.folder, options.seed);
    if (options.output.json) {
      document.push_back({{"name", name}, {"xml", files.xml}, {"weights", files.weights}});
    } else if (!options.output.quiet) {
      const auto& entries = zoo_entries();
      const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& candidate) {
        return candidate.name == name;
      });
      fmt::print("{}: {} ops, weights {}\n", files.xml, entry->ops,
                 size_text(static_cast<double>(entry->bytes)));
    }
  }
  if (options.output.json) print_json(document);
  return ExitCode::success;
}

ExitCode zoo(const ZooOptions& options) {
  if (options.task == "list") return list(options);
  if (options.task == "make") return make(options);
  const std::vector<std::string> tasks{"list", "make"};
  throw UsageError(fmt::format("'zoo' takes list or make, found '{}'{}", options.task,
                               did_you_mean(options.task, tasks)));
}

}  // namespace

void add_zoo(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("zoo", "List the models that are built in, or make one");
  const auto options = std::make_shared<ZooOptions>();
  verb->add_option("task", options->task, "list or make")->required()->type_name("TASK");
  verb->add_option("names", options->names, "make: the models")->type_name("NAME");
  verb->add_option("-o,--output", options->folder, "make: the folder that receives the files")
      ->type_name("FOLDER")
      ->group("Output")
      ->capture_default_str();
  add_number(*verb, "--seed", options->seed, kAnySeed, "make: seed of the weights");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return zoo(*options); }; });
}

}  // namespace placewright::cli
