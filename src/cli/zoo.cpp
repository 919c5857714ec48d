#include "zoo/zoo.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/number_option.h"
#include "cli/output_options.h"
#include "cli/record_table.h"
#include "cli/verbs.h"
#include "planning/sizes.h"
#include "planning/suggestion.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "'list' shows the models. 'make NAME...' writes NAME.xml and NAME.bin, which OpenVINO reads.\n"
    "The graphs are those of the published models. The weights are random, so times and memory "
    "are\n"
    "real and outputs mean nothing.\n"
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

using Json = nlohmann::ordered_json;

Json tensors_json(const std::vector<ZooTensor>& tensors) {
  Json documents = Json::array();
  for (const ZooTensor& tensor : tensors) {
    Json& document = documents.emplace_back(
        Json{{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}});
    if (tensor.most > 0) document.update({{"least", tensor.least}, {"most", tensor.most}});
  }
  return documents;
}

std::string inputs_text(const Json& inputs) {
  std::vector<std::string> texts;
  for (const Json& input : inputs) {
    texts.push_back(fmt::format("{} {}", input["name"].get<std::string>(),
                                fmt::join(input["shape"].get<std::vector<std::size_t>>(), "x")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

RecordTable<ZooEntry> entry_table(bool with_details) {
  const auto detail = [&](const char* title) {
    return with_details ? std::optional<std::string>(title) : std::nullopt;
  };
  return RecordTable<ZooEntry>({
      {"name", "model", words(), [](const auto& entry) { return entry.name; }},
      {"ops", "ops", count(), [](const auto& entry) { return entry.ops; }},
      {"parameters", kNoTitle, count(), [](const auto& entry) { return entry.parameters; }},
      {"bytes", "weights", size(), [](const auto& entry) { return entry.bytes; }},
      {"title", "what it is", words(), [](const auto& entry) { return entry.title; }},
      {"inputs",
       detail("inputs"),
       {Align::left, inputs_text},
       [](const auto& entry) { return tensors_json(entry.inputs); }},
      {"outputs", kNoTitle, words(), [](const auto& entry) { return tensors_json(entry.outputs); }},
      {"source", detail("source"), words(), [](const auto& entry) { return entry.source; }},
      {"licence", detail("licence"), words(), [](const auto& entry) { return entry.licence; }},
  });
}

ExitCode list(const ZooOptions& options) {
  if (!options.names.empty()) {
    throw UsageError(fmt::format("'zoo list' takes no names, found '{}'", options.names.front()));
  }
  const RecordTable<ZooEntry> table = entry_table(options.output.verbose);
  if (options.output.json) {
    print_json(table.json(zoo_entries()));
  } else if (!options.output.quiet) {
    fmt::print("{}", table.text(zoo_entries()));
  }
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
  Json document = Json::array();
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
  add_written(*verb, "-o,--output", options->folder, "make: write the files into this folder",
              "FOLDER")
      ->capture_default_str();
  add_number(*verb, "--seed", options->seed, kAnySeed, "make: seed of the weights");
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return zoo(*options); }; });
}

}  // namespace placewright::cli
