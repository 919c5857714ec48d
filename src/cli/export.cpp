#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "backends/affinity.h"
#include "backends/opened_models.h"
#include "cli/output_options.h"
#include "cli/plan_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "formats/graph_export.h"
#include "formats/plan_rows.h"
#include "formats/text_file.h"
#include "formats/trace_export.h"
#include "planning/suggestion.h"
#include "verify/verifier.h"

namespace placewright::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright export plan.json --to trace -o trace.json       for ui.perfetto.dev\n"
    "  placewright export plan.json --to dot | dot -Tsvg > plan.svg\n"
    "  placewright export plan.json --to model-explorer -o graph.json\n"
    "  placewright export plan.json --to csv -o plan.csv\n"
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

using Writer = std::string (*)(const Problem&, const Plan&);

Writer writer_for(const std::string& target) {
  if (target == "trace") {
    return [](const Problem& problem, const Plan& plan) { return trace_json(problem, plan); };
  }
  if (target == "dot") return dot_text;
  if (target == "model-explorer") return model_explorer_graph;
  if (target == "csv") {
    return
        [](const Problem& problem, const Plan& plan) { return csv_text(plan_rows(problem, plan)); };
  }
  if (target == "table") {
    return [](const Problem& problem, const Plan& plan) {
      return table_text(plan_rows(problem, plan));
    };
  }
  const std::vector<std::string> known = {"trace", "dot",   "model-explorer",
                                          "csv",   "table", "openvino"};
  throw UsageError(fmt::format("--to: unknown target '{}'{} (known: {})", target,
                               did_you_mean(target, known), fmt::join(known, ", ")));
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

ExitCode export_plan(const ExportOptions& options) {
  const bool openvino = options.target == "openvino";
  const Writer write = openvino ? nullptr : writer_for(options.target);
  const OpenedPlan loaded = options.plan.read(options.output);
  if (!is_valid(loaded)) return ExitCode::no;
  if (openvino) {
    write_openvino(options, loaded);
    return ExitCode::success;
  }
  write_whole(options.path, write(loaded.problem, loaded.plan()));
  if (options.target == "model-explorer" && options.path != "-") {
    write_whole(node_data_path(options.path),
                model_explorer_node_data(loaded.problem, loaded.plan()));
  }
  return ExitCode::success;
}

}  // namespace

void add_export(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand("export", "Write a plan for another program");
  const auto options = std::make_shared<ExportOptions>();
  options->plan.add_to(*verb);
  verb->add_option("--to", options->target, "trace, dot, model-explorer, csv, table or openvino")
      ->required()
      ->type_name("TARGET");
  verb->add_option("-o,--output", options->path, "Write it here; - is standard output")
      ->capture_default_str()
      ->type_name("FILE");
  verb->add_flag("-q,--quiet", options->output.quiet, "Print no warning");
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return export_plan(*options); }; });
}

}  // namespace placewright::cli
