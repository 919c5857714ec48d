#include "backends/import.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/folded_ops.h"
#include "backends/part_inputs.h"
#include "backends/registry.h"
#include "formats/text_file.h"
#include "problem/cost_source.h"

namespace placewright {
namespace {

namespace fs = std::filesystem;

std::string shape_text(const TensorType& type) {
  return fmt::format("{} {}", fmt::join(type.shape, "x"), type.element);
}

bool multiplies_matrices(const std::string& type) {
  return type.find("Convolution") != std::string::npos || type == "MatMul";
}

bool is_in_half(const GraphOp& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [](const TensorType& output) {
    return output.element == "f16" || output.element == "bf16";
  });
}

bool gathers(const std::string& type) {
  return type.starts_with("Gather") || type.starts_with("EmbeddingBag");
}

// Bytes that an op reads and writes, its weights included.
std::vector<double> bytes_touched(const ModelGraph& graph) {
  std::vector<double> bytes(graph.ops.size(), 0);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const TensorType& output : graph.ops[op].outputs) bytes[op] += output.bytes;
    if (gathers(graph.ops[op].type)) {
      bytes[op] *= 2;
      continue;
    }
    for (const TensorKey& input : graph.ops[op].inputs) {
      bytes[op] += type_of(graph, input).bytes;
    }
  }
  for (const Weight& weight : graph.weights) {
    for (const std::size_t op : weight.ops) {
      if (!gathers(graph.ops[op].type)) bytes[op] += weight.bytes;
    }
  }
  return bytes;
}

std::map<TensorKey, std::vector<OpId>> readers_of_tensors(const ModelGraph& graph) {
  std::map<TensorKey, std::vector<OpId>> readers;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const TensorKey& input : graph.ops[op].inputs) {
      if (!input.is_model_input()) readers[input].push_back(OpId{op});
    }
  }
  return readers;
}

void add_tensors(const ModelGraph& graph, ProblemDraft& draft) {
  for (auto& [key, consumers] : readers_of_tensors(graph)) {
    const GraphOp& producer = graph.ops[key.op];
    const TensorType& type = producer.outputs[key.port];
    draft.tensors.push_back({.name = producer.outputs.size() == 1
                                         ? producer.name
                                         : fmt::format("{}.{}", producer.name, key.port),
                             .producer = OpId{key.op},
                             .consumers = std::move(consumers),
                             .bytes = type.bytes,
                             .shape = shape_text(type)});
  }
}

void add_weights(const ModelGraph& graph, ProblemDraft& draft) {
  for (const Weight& weight : graph.weights) {
    if (weight.ops.size() == 1) {
      draft.ops[weight.ops.front()].memory += weight.bytes;
      continue;
    }
    SharedWeight& shared = draft.shared_weights.emplace_back();
    shared.name = weight.name;
    shared.bytes = weight.bytes;
    for (const std::size_t op : weight.ops) shared.ops.emplace_back(op);
  }
}

}  // namespace

ModelSource source_of(const std::string& path, const std::vector<std::string>& shapes,
                      const std::string& folder) {
  ModelSource source;
  const fs::path absolute = fs::absolute(path).lexically_normal();
  source.path =
      folder.empty()
          ? absolute.string()
          : absolute.lexically_proximate(fs::absolute(folder).lexically_normal()).string();
  source.digest = digest_of_file(path);
  source.shapes = shapes;
  if (const BackendEntry* backend = backend_reading(path)) source.backend = backend->name;
  return source;
}

ProblemDraft draft_of(const ModelGraph& graph, const std::string& name, ModelSource source) {
  ProblemDraft draft;
  draft.name = name;
  draft.unit = TimeUnit::milliseconds;
  draft.models.push_back({.name = name, .deadline = {}, .source = std::move(source)});
  draft.ops.reserve(graph.ops.size());
  for (const GraphOp& op : graph.ops) {
    draft.ops.push_back({.name = op.name, .type = op.type, .flops = op.flops, .time = {}});
  }
  add_tensors(graph, draft);
  add_weights(graph, draft);
  return draft;
}

std::vector<TensorKey> tensors_of_draft(const ModelGraph& graph) {
  std::vector<TensorKey> keys;
  for (const auto& [key, readers] : readers_of_tensors(graph)) keys.push_back(key);
  return keys;
}

PeakRates usual_rates(const Target& target) {
  if (target.cores.empty()) return {.flops = 2e12, .bandwidth = 57e9, .launch = 10e-6};
  // 16 f32 multiply-adds per clock at 3 GHz.
  const double cores = target.threads();
  return {.flops = 96e9 * cores, .bandwidth = 14e9 * std::min(cores, 4.0), .launch = 2e-6};
}

void estimate_times(ProblemDraft& draft, const ModelGraph& graph, const Cluster& cluster,
                    const std::vector<PeakRates>& kinds) {
  draft.cluster = cluster;
  const std::vector<double> bytes = bytes_touched(graph);
  const std::vector<bool> nothing = takes_no_time(graph);
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const OpWork work{.flops = graph.ops[op].flops,
                      .bytes = bytes[op],
                      .of_matrices = multiplies_matrices(graph.ops[op].type),
                      .in_half = is_in_half(graph.ops[op])};
    for (const PeakRates& peak : kinds) {
      draft.ops[op].time.push_back(nothing[op] ? 0 : 1000 * peak.estimated_seconds(work));
    }
  }
  draft.origin.push_back(std::string(kEstimatedOrigin) +
                         " from flops and bytes, not measured ('placewright profile' measures)");
}

void keep_folded_together(ProblemDraft& draft, const ModelGraph& graph) {
  draft.colocated = folded_together(graph);
}

}  // namespace placewright
