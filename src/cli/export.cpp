#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "formats/graph_export.h"
#include "formats/input_error.h"
#include "formats/plan_rows.h"
#include "formats/text_file.h"
#include "formats/tool_plans.h"
#include "formats/trace_export.h"
#include "planning/suggestion.h"
#include "running/model_exports.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

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

using FilesOf = std::vector<ExportedFile> (*)(const Problem&, const Plan&, const std::string&);

template <FilesOf files_of>
void model_writer(const ExportOptions& options, const OpenedPlan& loaded) {
  std::vector<ExportedFile> files;
  try {
    files = files_of(loaded.problem, loaded.plan(), options.path);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--to {} {}", options.target, error.what()));
  }
  for (const ExportedFile& file : files) {
    std::error_code failed;  // then write_whole says why
    std::filesystem::create_directories(std::filesystem::path(file.path).parent_path(), failed);
    write_whole(file.path, file.bytes);
  }
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
    ExportTarget{"parts", model_writer<part_files>},
    ExportTarget{"openvino", model_writer<openvino_files>},
    ExportTarget{"onnxruntime", model_writer<onnxruntime_files>},
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
