#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backends/affinity.h"
#include "backends/opened_models.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/graph_export.h"
#include "formats/input_error.h"
#include "formats/json_text.h"
#include "formats/plan_rows.h"
#include "formats/text_file.h"
#include "formats/tool_plans.h"
#include "formats/trace_export.h"
#include "planning/suggestion.h"
#include "running/plan_parts.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright export plan.json --to trace -o trace.json       for ui.perfetto.dev\n"
    "  placewright export plan.json --to dot | dot -Tsvg > plan.svg\n"
    "  placewright export plan.json --to model-explorer -o graph.json\n"
    "  placewright export plan.json --to csv -o plan.csv\n"
    "  placewright export plan.json --to parts -o folder           sub-models for any runtime\n"
    "  placewright export plan.json --to accelerate -o map.json    a device_map for Hugging Face\n"
    "  placewright export plan.json --to llama.cpp                 arguments of llama-server\n"
    "  placewright export step.json --to vllm      a training plan; also megatron, deepspeed, "
    "sglang\n"
    "\n"
    "model-explorer writes a second file, graph.node-data.json, with each op's time and device.";

struct ExportOptions {
  PlanOptions plan;
  OutputOptions output;
  std::string target;
  std::string path = "-";
};

std::string table_text(const PlanRows& rows) {
  std::vector<Column> columns;
  for (const std::string& title : rows.titles) {
    const bool number =
        title == "start" || title == "end" || title == "time" || title == "bytes" || title == "ops";
    columns.push_back({title, number ? Align::right : Align::left});
  }
  TextTable table(std::move(columns));
  for (const auto& row : rows.rows) table.add(row);
  return table.text();
}

// "out/graph.json" and "out/graph.node-data.json".
std::string node_data_path(const std::string& path) {
  std::filesystem::path file(path);
  return file.replace_extension(".node-data.json").string();
}

// The model with the device of each op: two files of OpenVINO's, and the affinities beside them.
void write_openvino(const ExportOptions& options, const OpenedPlan& loaded) {
  if (!options.path.ends_with(".xml")) {
    throw UsageError("--to openvino writes an IR and needs -o FILE.xml");
  }
  if (loaded.problem.model_count() != 1) {
    throw UsageError("--to openvino takes a plan for one model");
  }
  const auto models = models_of(loaded.problem);
  const SerialisedModel model = models.front()->serialised();
  // The weights first: who sees the graph finds all of it.
  write_whole(options.path.substr(0, options.path.size() - 4) + ".bin", model.weights);
  write_whole(options.path, model.graph);
  write_whole(affinity_path(options.path), affinity_json(loaded.problem, loaded.plan()));
}

// "part-1.onnx"; with several models in a folder of its model.
std::string file_of(const Problem& problem, const std::vector<PlanPart>& parts,
                    std::size_t number) {
  std::string file = fmt::format("part-{}{}", number + 1, parts[number].ending);
  if (problem.model_count() == 1) return file;
  return fmt::format("{}/{}", file_name_of(problem.model(parts[number].model).name), file);
}

Json port_json(const PartPort& port) {
  return {{"tensor", port.tensor}, {"type", port.type.element}, {"shape", port.type.shape}};
}

// Which part runs where, in an order in which they can run, and which tensor goes where.
Json manifest_of(const OpenedPlan& loaded, const std::vector<PlanPart>& parts) {
  const Problem& problem = loaded.problem;
  Json document = {{"placewright", "parts"},       {"version", 1},
                   {"problem", problem.name()},    {"objective", name_of(problem.objective())},
                   {"value", loaded.plan().value}, {"unit", name_of(problem.unit())},
                   {"parts", Json::array()}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PlanPart& part = parts[i];
    Json entry = {{"file", file_of(problem, parts, i)},
                  {"model", problem.model(part.model).name},
                  {"devices", device_names(problem, part.devices)},
                  {"ops", part.ops},
                  {"inputs", Json::array()},
                  {"outputs", Json::array()}};
    for (const PartPort& input : part.inputs) {
      entry["inputs"].push_back(port_json(input));
      entry["inputs"].back()["from"] = input.from ? Json(*input.from + 1) : Json("model");
    }
    for (const PartPort& output : part.outputs) {
      entry["outputs"].push_back(port_json(output));
      Json to = Json::array();
      for (const std::size_t reader : output.to) to.push_back(reader + 1);
      entry["outputs"].back()["to"] = std::move(to);
      if (!output.model_output.empty()) {
        entry["outputs"].back()["model_output"] = output.model_output;
      }
    }
    document["parts"].push_back(std::move(entry));
  }
  return document;
}

void write_parts(const ExportOptions& options, const OpenedPlan& loaded) {
  if (options.path == "-") throw UsageError("--to parts writes several files and needs -o FOLDER");
  const std::vector<PlanPart> parts =
      plan_parts(loaded.problem, loaded.plan(), models_of(loaded.problem));
  const std::filesystem::path folder(options.path);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::filesystem::path file = folder / file_of(loaded.problem, parts, i);
    std::error_code failed;  // then write_whole says why
    std::filesystem::create_directories(file.parent_path(), failed);
    // The weights first: who sees the graph finds all of it.
    if (parts[i].ending == ".xml") {
      write_whole(std::filesystem::path(file).replace_extension(".bin").string(),
                  parts[i].file.weights);
    }
    write_whole(file.string(), parts[i].file.graph);
  }
  write_whole((folder / "manifest.json").string(), json_text(manifest_of(loaded, parts), 1) + '\n');
}

// ONNX Runtime's name of a device: https://onnxruntime.ai, "session.layer_assignment_settings".
std::string designator_of(const std::string& device) {
  std::string name = device;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.starts_with("cpu")) return "cpu";
  const std::size_t digits = name.find_first_of("0123456789");
  const std::string number = digits == std::string::npos ? "0" : name.substr(digits);
  if (name.starts_with("cuda") || name.starts_with("gpu")) return "gpu:" + number;
  if (name.starts_with("npu")) return "npu";
  throw UsageError(fmt::format(
      "--to onnxruntime: ONNX Runtime has no device like '{}' (it has cpu, cuda:N, gpu:N, npu)",
      device));
}

// The model with the device of each node as its metadata `layer_ann`, and the settings of a session
// that puts the nodes there.
void write_onnxruntime(const ExportOptions& options, const OpenedPlan& loaded) {
  const Problem& problem = loaded.problem;
  if (!options.path.ends_with(".onnx")) {
    throw UsageError("--to onnxruntime writes a model and needs -o FILE.onnx");
  }
  if (problem.model_count() != 1 || !problem.model(ModelId{0}).source ||
      !problem.model(ModelId{0}).source->path.ends_with(".onnx")) {
    throw UsageError("--to onnxruntime takes a plan for one model that came from an .onnx file");
  }
  const auto models = models_of(problem);
  const std::filesystem::path source = problem.model(ModelId{0}).source->path;
  const auto folder = [](const std::filesystem::path& path) {
    return std::filesystem::absolute(path).parent_path().lexically_normal();
  };
  std::set<std::string> rules;
  const AnnotatedOnnx model =
      annotated_onnx(problem, loaded.plan(), *models.front(), "layer_ann", [&](DeviceId device) {
        std::string designator = designator_of(problem.device(device).name);
        rules.insert(fmt::format("{0}(={0})", designator));
        return designator;
      });
  if (model.has_files_beside && folder(source) != folder(options.path)) {
    throw UsageError(fmt::format(
        "--to onnxruntime: the weights lie beside the model, so -o must be in the same folder, {}",
        folder(source).string()));
  }
  const Json settings = {
      {"session.layer_assignment_settings", fmt::format("{}", fmt::join(rules, "; "))}};
  write_whole(options.path, model.bytes);
  write_whole(std::filesystem::path(options.path).replace_extension(".session.json").string(),
              json_text(settings, 1) + '\n');
}

// A text that another program reads.
using TextWriter = std::string (*)(const Problem&, const Plan&);

void write_text(const ExportOptions& options, const OpenedPlan& loaded, TextWriter text_of) {
  try {
    write_whole(options.path, text_of(loaded.problem, loaded.plan()));
  } catch (const std::invalid_argument& error) {
    throw InputError(options.plan.path, "",
                     fmt::format("cannot be written for {}: {}", options.target, error.what()));
  }
}

template <TextWriter text_of>
void text_writer(const ExportOptions& options, const OpenedPlan& loaded) {
  write_text(options, loaded, text_of);
}

std::string trace_text(const Problem& problem, const Plan& plan) {
  return trace_json(problem, plan);
}
std::string csv_of(const Problem& problem, const Plan& plan) {
  return csv_text(plan_rows(problem, plan));
}
std::string table_of(const Problem& problem, const Plan& plan) {
  return table_text(plan_rows(problem, plan));
}

void write_model_explorer(const ExportOptions& options, const OpenedPlan& loaded) {
  write_text(options, loaded, model_explorer_graph);
  if (options.path == "-") return;
  write_whole(node_data_path(options.path),
              model_explorer_node_data(loaded.problem, loaded.plan()));
}

// What plans are written for. A new target is a line here.
struct ExportTarget {
  std::string_view name;
  void (*write)(const ExportOptions&, const OpenedPlan&);
};
constexpr std::array kTargets = {
    ExportTarget{"trace", text_writer<trace_text>},
    ExportTarget{"dot", text_writer<dot_text>},
    ExportTarget{"model-explorer", write_model_explorer},
    ExportTarget{"csv", text_writer<csv_of>},
    ExportTarget{"table", text_writer<table_of>},
    ExportTarget{"parts", write_parts},
    ExportTarget{"openvino", write_openvino},
    ExportTarget{"onnxruntime", write_onnxruntime},
    ExportTarget{"accelerate", text_writer<accelerate_map>},
    ExportTarget{"torch-pipelining", text_writer<torch_pipelining_split>},
    ExportTarget{"llama.cpp", text_writer<llama_cpp_arguments>},
    ExportTarget{"megatron", text_writer<megatron_layout>},
    ExportTarget{"deepspeed", text_writer<deepspeed_parts>},
};

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const ExportTarget& target : kTargets) names.emplace_back(target.name);
  return names;
}

const ExportTarget& target_named(const std::string& name) {
  const auto* found = std::ranges::find(kTargets, name, &ExportTarget::name);
  if (found != kTargets.end()) return *found;
  throw UsageError(fmt::format("--to: unknown target '{}'{} (known: {})", name,
                               did_you_mean(name, target_names()),
                               fmt::join(target_names(), ", ")));
}

ExitCode export_plan(const CLI::App& verb, const ExportOptions& options) {
  options.plan.problem.check();
  if (const auto done =
          export_training(verb, options.plan.path, options.target, options.path, options.output)) {
    return *done;
  }
  const ExportTarget& target = target_named(options.target);
  const OpenedPlan loaded = options.plan.read(options.output);
  if (!is_valid(loaded)) return ExitCode::no;
  target.write(options, loaded);
  return ExitCode::success;
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("export", "Write a plan for another program");
  const auto options = std::make_shared<ExportOptions>();
  options->plan.add_to(*verb);
  verb->add_option(
          "--to", options->target,
          fmt::format("The target: {}; for training plans: {}", fmt::join(target_names(), ", "),
                      fmt::join(training_target_names(), ", ")))
      ->required()
      ->type_name("TARGET");
  verb->add_option("-o,--output", options->path,
                   "Write to this file; - is standard output; for 'parts' a folder")
      ->capture_default_str()
      ->type_name("FILE");
  verb->add_flag("-q,--quiet", options->output.quiet, "Print no warnings");
  verb->footer(kExamples);
  verb->callback([&action, verb, options] {
    action = [verb, options] { return export_plan(*verb, *options); };
  });
}

}  // namespace placewright::cli
