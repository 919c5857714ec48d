#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bounds/bounds.h"
#include "cli/model_info.h"
#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "coarsen/coarsening.h"
#include "planning/feasibility.h"
#include "planning/sizes.h"

namespace placewright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "Examples:\n"
    "  placewright info examples/moirai/GoogLeNet.json\n"
    "  placewright info graph.json --objective throughput --json\n"
    "  placewright info model.onnx                       inputs, outputs, types and shapes";

struct InfoOptions {
  ProblemOptions problem;
  OutputOptions output;
};

struct Shape {
  std::size_t depth = 0;        // ops on the longest path
  std::size_t level_width = 0;  // most ops at the same distance from the start
};

Shape shape_of(const Problem& problem) {
  Table<OpId, std::size_t> level(problem.op_count());
  std::vector<std::size_t> width;
  for (const OpId op : problem.topological_order()) {
    for (const OpId before : problem.predecessors(op)) {
      level[op] = std::max(level[op], level[before] + 1);
    }
    width.resize(std::max(width.size(), level[op] + 1));
    ++width[level[op]];
  }
  return {width.size(), width.empty() ? 0 : *std::max_element(width.begin(), width.end())};
}

// Ops that some device cannot run.
std::size_t restricted_ops(const Problem& problem) {
  const auto ops = problem.ops();
  return static_cast<std::size_t>(std::count_if(ops.begin(), ops.end(), [&](OpId op) {
    const auto devices = problem.devices();
    return std::any_of(devices.begin(), devices.end(),
                       [&](DeviceId device) { return problem.time(op, device) == kUnsupported; });
  }));
}

std::size_t groups_of_several(const Problem& problem) {
  const auto groups = problem.groups();
  return static_cast<std::size_t>(std::count_if(groups.begin(), groups.end(), [&](GroupId group) {
    return problem.group_ops(group).size() > 1;
  }));
}

std::size_t pinned_ops(const Problem& problem) {
  const auto& ops = problem.draft().ops;
  return static_cast<std::size_t>(
      std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.pinned_to.valid(); }));
}

std::string_view interconnect_name(const Problem& problem) {
  return problem.interconnect() == InterconnectKind::host ? "host" : "links";
}

struct CoarseSize {
  std::string method;
  std::size_t ops;
  std::size_t edges;
  bool lossless;
};

// What each way of coarsening would leave.
std::vector<CoarseSize> coarse_sizes(const Problem& problem) {
  std::vector<CoarseSize> sizes;
  for (const CoarsenMethod method : values_of<CoarsenMethod>()) {
    const Coarsening coarsening(problem, CoarsenOptions{.method = method});
    sizes.push_back({std::string{name_of(method)}, coarsening.coarse().op_count(),
                     coarsening.coarse().edge_count(), coarsening.lossless()});
  }
  return sizes;
}

struct FileFacts {
  std::string format;
  std::string digest;
};

void print_text(const Problem& problem, const FileFacts& facts) {
  const auto line = [](const char* name, const std::string& text) {
    fmt::print("{:<16}  {}\n", name, text);
  };
  const Shape shape = shape_of(problem);
  line("problem", printable(problem.name()));
  line("format", facts.format);
  line("digest", facts.digest);
  line("objective", std::string{name_of(problem.objective())});
  line("unit", std::string{name_of(problem.unit())});
  line("models", fmt::format("{}", problem.model_count()));
  line("ops", fmt::format("{}", problem.op_count()));
  line("tensors", fmt::format("{}", problem.tensor_count()));
  line("edges", fmt::format("{}", problem.edge_count()));
  line("depth", fmt::format("{}", shape.depth));
  line("level width", fmt::format("{}", shape.level_width));
  line("groups", fmt::format("{} of several ops", groups_of_several(problem)));
  line("pinned ops", fmt::format("{}", pinned_ops(problem)));
  line("restricted ops",
       fmt::format("{} that some device does not support", restricted_ops(problem)));
  line("interconnect", std::string{interconnect_name(problem)});
  line("memory needed", size_text(memory_needed(problem)));
  line("memory there is", size_text(memory_available(problem)));
  if (const auto proof = proof_of_infeasibility(problem)) line("infeasible", printable(*proof));

  TextTable devices({{"device"}, {"kind"}, {"memory", Align::right}, {"lanes", Align::right}});
  for (const DeviceId id : problem.devices()) {
    const Device& device = problem.device(id);
    devices.add({device.name, problem.draft().cluster.kinds[device.kind.index()].name,
                 size_text(problem.space_memory(problem.space(id))),
                 fmt::format("{}", device.lanes)});
  }
  fmt::print("\n{}\n", devices.text());
  TextTable coarse(
      {{"coarsening"}, {"ops", Align::right}, {"edges", Align::right}, {"bounds carry over"}});
  for (const CoarseSize& size : coarse_sizes(problem)) {
    coarse.add({size.method, fmt::format("{}", size.ops), fmt::format("{}", size.edges),
                size.lossless ? "yes" : "no"});
  }
  fmt::print("{}\n", coarse.text());
  TextTable bounds({{"lower bound"}, {"value", Align::right}});
  for (const Bound& bound : lower_bounds(problem)) {
    bounds.add({bound.name, value_text(bound.value, problem.unit())});
  }
  fmt::print("{}", bounds.text());
}

Json devices_json(const Problem& problem) {
  Json devices = Json::array();
  for (const DeviceId id : problem.devices()) {
    const Device& device = problem.device(id);
    devices.push_back({{"name", device.name},
                       {"kind", problem.draft().cluster.kinds[device.kind.index()].name},
                       {"memory", finite_or_null(device.memory)},
                       {"lanes", device.lanes}});
  }
  return devices;
}

void print_document(const Problem& problem, const FileFacts& facts,
                    const std::vector<std::string>& warnings) {
  const Shape shape = shape_of(problem);
  Json document = {{"problem", problem.name()},
                   {"format", facts.format},
                   {"digest", facts.digest},
                   {"objective", name_of(problem.objective())},
                   {"unit", name_of(problem.unit())},
                   {"models", problem.model_count()},
                   {"ops", problem.op_count()},
                   {"tensors", problem.tensor_count()},
                   {"edges", problem.edge_count()},
                   {"depth", shape.depth},
                   {"level_width", shape.level_width},
                   {"groups", groups_of_several(problem)},
                   {"pinned_ops", pinned_ops(problem)},
                   {"restricted_ops", restricted_ops(problem)},
                   {"interconnect", interconnect_name(problem)},
                   {"memory_needed", memory_needed(problem)},
                   {"memory_available", finite_or_null(memory_available(problem))},
                   {"devices", devices_json(problem)},
                   {"coarsening", Json::array()},
                   {"bounds", Json::array()},
                   {"warnings", warnings}};
  for (const CoarseSize& size : coarse_sizes(problem)) {
    document["coarsening"].push_back({{"method", size.method},
                                      {"ops", size.ops},
                                      {"edges", size.edges},
                                      {"lossless", size.lossless}});
  }
  for (const Bound& bound : lower_bounds(problem)) {
    document["bounds"].push_back({{"name", bound.name}, {"value", bound.value}});
  }
  if (const auto proof = proof_of_infeasibility(problem)) document["infeasible"] = *proof;
  print_json(document);
}

ExitCode info(const InfoOptions& options) {
  if (options.problem.names_models()) {
    return model_info(options.problem.model_files(), options.output);
  }
  ProblemFile file = options.problem.read(options.output);
  options.output.warn(file.warnings);
  const FileFacts facts{file.format, file.digest};
  const std::vector<std::string> warnings = file.warnings;
  const Problem problem = build_problem(std::move(file));
  if (options.output.json) {
    print_document(problem, facts, warnings);
  } else {
    print_text(problem, facts);
  }
  return ExitCode::success;
}

}  // namespace

void add_info(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "info", "What is in a problem (sizes, devices, bounds) or a model (inputs, outputs)");
  const auto options = std::make_shared<InfoOptions>();
  options->problem.add_argument_to(*verb);
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return info(*options); }; });
}

}  // namespace placewright::cli
