#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bounds/bounds.h"
#include "cli/model_info.h"
#include "cli/output_options.h"
#include "cli/problem_options.h"
#include "cli/record_table.h"
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

// A problem as it was read.
struct ReadProblem {
  const Problem& problem;
  std::string format;
  std::string digest;
};

RecordTable<ReadProblem> fact_table() {
  return RecordTable<ReadProblem>({
      {"problem", "problem", words(), [](const auto& r) { return r.problem.name(); }},
      {"format", "format", words(), [](const auto& read) { return read.format; }},
      {"digest", "digest", words(), [](const auto& read) { return read.digest; }},
      {"objective", "objective", words(),
       [](const auto& read) { return name_of(read.problem.objective()); }},
      {"unit", "unit", words(), [](const auto& read) { return name_of(read.problem.unit()); }},
      {"models", "models", count(), [](const auto& read) { return read.problem.model_count(); }},
      {"ops", "ops", count(), [](const auto& read) { return read.problem.op_count(); }},
      {"tensors", "tensors", count(), [](const auto& read) { return read.problem.tensor_count(); }},
      {"edges", "edges", count(), [](const auto& read) { return read.problem.edge_count(); }},
      {"depth", "depth", count(), [](const auto& read) { return shape_of(read.problem).depth; }},
      {"level_width", "level width", count(),
       [](const auto& read) { return shape_of(read.problem).level_width; }},
      {"groups", "groups", number("{} of several ops"),
       [](const auto& read) { return groups_of_several(read.problem); }},
      {"pinned_ops", "pinned ops", count(),
       [](const auto& read) { return pinned_ops(read.problem); }},
      {"restricted_ops", "restricted ops", number("{} that some device does not support"),
       [](const auto& read) { return restricted_ops(read.problem); }},
      {"interconnect", "interconnect", words(),
       [](const auto& read) { return interconnect_name(read.problem); }},
      {"memory_needed", "memory needed", size(),
       [](const auto& read) { return memory_needed(read.problem); }},
      {"memory_available", "memory there is", size(),
       [](const auto& read) { return memory_available(read.problem); }},
  });
}

RecordTable<DeviceId> device_table(const Problem& problem) {
  const auto of = [&](DeviceId id) -> const Device& { return problem.device(id); };
  return RecordTable<DeviceId>({
      {"name", "device", words(), [=](DeviceId id) { return of(id).name; }},
      {"kind", "kind", words(),
       [=, &problem](DeviceId id) {
         return problem.draft().cluster.kinds[of(id).kind.index()].name;
       }},
      {"memory", "memory", size(),
       [&](DeviceId id) { return problem.space_memory(problem.space(id)); }},
      {"lanes", "lanes", count(), [=](DeviceId id) { return of(id).lanes; }},
  });
}

RecordTable<ResourceId> resource_table(const Problem& problem) {
  const auto users = [&](ResourceId id) {
    std::vector<std::string> names;
    for (const DeviceId device : problem.devices()) {
      const bool uses = std::ranges::count(problem.uses(device), id, &ResourceUse::resource) > 0;
      if (uses) names.push_back(problem.device(device).name);
    }
    return names;
  };
  return RecordTable<ResourceId>({
      {"name", "resource", words(), [&](ResourceId id) { return problem.resource(id).name; }},
      {"capacity", "capacity", number("{:.6g}"),
       [&](ResourceId id) { return problem.resource(id).capacity; }},
      {"devices", kNoTitle, words(), users},
      {kNoKey, "used by", number("{} devices"), [=](ResourceId id) { return users(id).size(); }},
  });
}

RecordTable<CoarseSize> coarse_table() {
  return RecordTable<CoarseSize>({
      {"method", "coarsening", words(), [](const auto& size) { return size.method; }},
      {"ops", "ops", count(), [](const auto& size) { return size.ops; }},
      {"edges", "edges", count(), [](const auto& size) { return size.edges; }},
      {"lossless", "bounds carry over", words(), [](const auto& size) { return size.lossless; }},
  });
}

RecordTable<Bound> bound_table(TimeUnit unit) {
  return RecordTable<Bound>({
      {"name", "lower bound", words(), [](const auto& bound) { return bound.name; }},
      {"value", "value", time_in(unit), [](const auto& bound) { return bound.value; }},
  });
}

void print_text(const ReadProblem& read) {
  const Problem& problem = read.problem;
  fmt::print("{}", fact_table().lines(read));
  if (const auto proof = proof_of_infeasibility(problem)) {
    fmt::print("{}", titled_line("infeasible", printable(*proof)));
  }
  fmt::print("\n{}", device_table(problem).text(problem.devices()));
  if (problem.resource_count() > 0) {
    fmt::print("\n{}", resource_table(problem).text(problem.resources()));
  }
  fmt::print("\n{}\n{}", coarse_table().text(coarse_sizes(problem)),
             bound_table(problem.unit()).text(lower_bounds(problem)));
}

void print_document(const ReadProblem& read, const std::vector<std::string>& warnings) {
  const Problem& problem = read.problem;
  Json document = fact_table().json(read);
  document.update({{"devices", device_table(problem).json(problem.devices())},
                   {"coarsening", coarse_table().json(coarse_sizes(problem))},
                   {"bounds", bound_table(problem.unit()).json(lower_bounds(problem))},
                   {"warnings", warnings}});
  if (problem.resource_count() > 0) {
    document["resources"] = resource_table(problem).json(problem.resources());
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
  const std::string format = file.format;
  const std::string digest = file.digest;
  const std::vector<std::string> warnings = file.warnings;
  const Problem problem = build_problem(std::move(file));
  const ReadProblem read{problem, format, digest};
  if (options.output.json) {
    print_document(read, warnings);
  } else if (!options.output.quiet) {
    print_text(read);
  }
  return ExitCode::success;
}

}  // namespace

void add_info(CLI::App& program, Action& action) {
  CLI::App* verb = program.add_subcommand(
      "info", "Show what a problem (sizes, devices, bounds) or a model (inputs, outputs) holds");
  const auto options = std::make_shared<InfoOptions>();
  options->problem.add_argument_to(*verb);
  options->output.add_to(*verb);
  verb->footer(kExamples);
  verb->callback([&action, options] { action = [options] { return info(*options); }; });
}

}  // namespace placewright::cli
