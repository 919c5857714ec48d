#include "formats/tool_plans.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"
#include "formats/module_names.h"
#include "formats/plan_rows.h"
#include "formats/printable.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

const std::string& device_of(const Problem& problem, const Plan& plan, OpId op) {
  return problem.device(plan.placement[op]).name;
}

// accelerate calls "cuda:1" just 1; the others are called as they are.
Json accelerate_name(const std::string& device) {
  constexpr std::string_view kCuda = "cuda:";
  const std::optional<std::size_t> number =
      device.starts_with(kCuda) ? whole_number(std::string_view{device}.substr(kCuda.size()))
                                : std::nullopt;
  return number ? Json(*number) : Json(device);
}

// Modules by name; a module whose ops are all on one device stands for everything below it.
struct Module {
  std::set<std::string> devices;  // of its ops and of all that is inside
  bool is_op = false;
  std::map<std::string, Module, std::less<>> inner;
};

void add_to_map(const std::string& name, const Module& module, Json& map) {
  if (module.devices.size() == 1) {
    map[name] = accelerate_name(*module.devices.begin());
    return;
  }
  if (module.is_op) throw std::invalid_argument(fmt::format("module '{}' is on two devices", name));
  for (const auto& [part, inner] : module.inner) {
    add_to_map(name.empty() ? part : fmt::format("{}.{}", name, part), inner, map);
  }
}

// What the layers and the ends of a model are placed on, as a device or a stage.
struct Layers {
  std::string stack;                  // what comes before the numbers: "model.layers"
  std::vector<std::size_t> of_layer;  // device or stage of each
  std::vector<std::string> names;     // of each: "model.layers.3"
  std::set<std::size_t> of_embedding;
  std::set<std::size_t> of_head;
  std::string first_of_head;  // op
};

// `place` gives the device or stage of an op, `what` says which of the two.
template <class Place>
Layers layers_of(const Problem& problem, const char* what, const Place& place) {
  Layers layers;
  std::map<std::size_t, std::pair<std::size_t, OpId>> found;  // place and first op by number
  const auto& order = problem.topological_order();
  std::optional<std::size_t> last;  // position of the last op of a layer
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = problem.op(order[i]).name;
    const std::optional<LayerName> layer = layer_named(name);
    if (!layer) continue;
    if (found.empty()) layers.stack = layer->stack;
    if (layer->stack != layers.stack) {
      throw std::invalid_argument(
          fmt::format("its layers are in two stacks, '{}' and '{}'; the tool takes one",
                      layers.stack, layer->stack));
    }
    last = i;
    const auto [entry, is_new] = found.try_emplace(layer->number, place(order[i]), order[i]);
    if (entry->second.first != place(order[i])) {
      throw std::invalid_argument(fmt::format(
          "layer {} is on two {}s ('{}' and '{}' are apart), which the tool cannot express: keep "
          "the ops of a layer together",
          layer->number, what, problem.op(entry->second.second).name, name));
    }
  }
  if (!last) {
    throw std::invalid_argument(
        "no op is named by its layer, as in 'model.layers.12.mlp': there are no layers to name");
  }
  for (const auto& [number, entry] : found) {
    if (number != layers.of_layer.size()) {
      throw std::invalid_argument(fmt::format("there is no layer {}", layers.of_layer.size()));
    }
    layers.of_layer.push_back(entry.first);
    layers.names.push_back(
        fmt::format("{}{}{}", layers.stack, layers.stack.empty() ? "" : ".", number));
  }
  bool before = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (layer_named(problem.op(order[i]).name)) {
      before = false;
    } else if (before) {
      layers.of_embedding.insert(place(order[i]));
    } else if (i > *last) {
      if (layers.of_head.empty()) layers.first_of_head = problem.op(order[i]).name;
      layers.of_head.insert(place(order[i]));
    }
  }
  return layers;
}

// Stages of a pipeline that has no replicas, by op.
Layers stages_of(const Problem& problem, const Plan& plan) {
  if (plan.stages.empty()) {
    throw std::invalid_argument("it is no pipeline: plan with '--objective throughput'");
  }
  Table<OpId, std::size_t> stage_of(problem.op_count(), 0);
  for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
    for (const OpId op : plan.stages[stage].ops) stage_of[op] = stage;
  }
  Layers layers = layers_of(problem, "stage", [&](OpId op) { return stage_of[op]; });
  if (!std::ranges::is_sorted(layers.of_layer)) {
    throw std::invalid_argument(
        "a later layer is in an earlier stage, which the tool cannot express");
  }
  const auto require_at = [&](const std::set<std::size_t>& places, std::size_t end,
                              const char* what) {
    if (!places.empty() && places != std::set{end}) {
      throw std::invalid_argument(
          fmt::format("the {} is not in stage {}, which the tool cannot express", what, end + 1));
    }
  };
  require_at(layers.of_embedding, 0, "embedding");
  require_at(layers.of_head, plan.stages.size() - 1, "head");
  return layers;
}

Json stage_devices(const Problem& problem, const Plan& plan) {
  Json stages = Json::array();
  for (const Stage& stage : plan.stages) stages.push_back(device_names(problem, stage.devices));
  return stages;
}

// "CUDA1" of "cuda:1", "CPU" of "cpu"; others as they are.
std::string llama_buffer(const std::string& device) {
  std::string name;
  for (const char letter : printable(device)) {
    if (letter != ':') name += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return name;
}

}  // namespace

std::string accelerate_map(const Problem& problem, const Plan& plan) {
  Module root;
  for (const OpId op : problem.ops()) {
    const std::string& device = device_of(problem, plan, op);
    Module* module = &root;
    module->devices.insert(device);
    for (const std::string& part : name_parts(problem.op(op).name)) {
      module = &module->inner[part];
      module->devices.insert(device);
    }
    module->is_op = true;
  }
  Json map = Json::object();
  add_to_map("", root, map);
  return json_text(map, 1) + '\n';
}

std::string torch_pipelining_split(const Problem& problem, const Plan& plan) {
  const Layers layers = stages_of(problem, plan);
  Json split = Json::object();
  std::size_t stage = layers.of_embedding.empty() ? layers.of_layer.front() : 0;
  const auto begin = [&](std::size_t next, const std::string& module) {
    if (next > stage) split[module] = "beginning";
    stage = next;
  };
  for (std::size_t layer = 0; layer < layers.of_layer.size(); ++layer) {
    begin(layers.of_layer[layer], layers.names[layer]);
  }
  if (!layers.of_head.empty()) begin(*layers.of_head.begin(), layers.first_of_head);
  if (split.size() + 1 != plan.stages.size()) {
    throw std::invalid_argument(
        "a stage has neither a layer nor an end of its own, so no split point begins it");
  }
  return json_text(Json{{"split_spec", std::move(split)}, {"stages", stage_devices(problem, plan)}},
                   2) +
         '\n';
}

// llama.cpp keeps the first layers in host memory and shares the last `-ngl` ones, the head counted
// as one of them, out over the accelerators in the order of `-dev` and the proportions of `-ts`.
// Where a plan wants a layer elsewhere, `-ot` says so.
std::string llama_cpp_arguments(const Problem& problem, const Plan& plan) {
  constexpr std::string_view kHost = "CPU";
  const Layers layers =
      layers_of(problem, "device", [&](OpId op) { return plan.placement[op].index(); });
  std::vector<std::string> buffer_of;  // by layer
  std::vector<std::string> accelerators;
  std::map<std::string, std::size_t> count_of;
  for (const std::size_t device : layers.of_layer) {
    const std::string buffer = llama_buffer(problem.device(DeviceId{device}).name);
    buffer_of.push_back(buffer);
    if (buffer != kHost && count_of[buffer]++ == 0) accelerators.push_back(buffer);
  }
  if (accelerators.empty()) return "-ngl 0\n";
  std::vector<std::string> usual(buffer_of.size(), std::string{kHost});
  std::size_t layer = usual.size();
  for (auto accelerator = accelerators.rbegin(); accelerator != accelerators.rend();
       ++accelerator) {
    for (std::size_t i = 0; i < count_of[*accelerator]; ++i) usual[--layer] = *accelerator;
  }
  std::map<std::string, std::vector<std::size_t>> elsewhere;
  for (layer = 0; layer < usual.size(); ++layer) {
    if (usual[layer] != buffer_of[layer]) elsewhere[buffer_of[layer]].push_back(layer);
  }
  std::vector<std::size_t> split;
  for (const std::string& accelerator : accelerators) split.push_back(count_of[accelerator]);
  ++split.back();  // the head goes with the last layers
  std::string arguments = fmt::format("-dev {} -ngl {} -ts {}", fmt::join(accelerators, ","),
                                      std::accumulate(split.begin(), split.end(), std::size_t{0}),
                                      fmt::join(split, ","));
  std::vector<std::string> overrides;
  for (const auto& [buffer, numbers] : elsewhere) {
    overrides.push_back(fmt::format("blk\\.({})\\.={}", fmt::join(numbers, "|"), buffer));
  }
  if (!overrides.empty()) arguments += fmt::format(" -ot \"{}\"", fmt::join(overrides, ","));
  return arguments + '\n';
}

std::string megatron_layout(const Problem& problem, const Plan& plan) {
  const Layers layers = stages_of(problem, plan);
  std::vector<std::string> stages(plan.stages.size());
  stages.front() += 'E';
  for (const std::size_t stage : layers.of_layer) stages[stage] += 't';
  stages.back() += 'L';
  return fmt::format("--pipeline-model-parallel-size {} --pipeline-model-parallel-layout \"{}\"\n",
                     stages.size(), fmt::join(stages, "|"));
}

std::string deepspeed_parts(const Problem& problem, const Plan& plan) {
  const Layers layers = stages_of(problem, plan);
  // A PipelineModule is a list: the embedding, the layers, the head.
  const std::size_t first = layers.of_embedding.empty() ? 0 : 1;
  std::vector<std::size_t> parts(plan.stages.size() + 1, 0);
  parts[1] = first;
  for (std::size_t layer = 0; layer < layers.of_layer.size(); ++layer) {
    parts[layers.of_layer[layer] + 1] = first + layer + 1;
  }
  for (std::size_t stage = 1; stage < parts.size(); ++stage) {
    parts[stage] = std::max(parts[stage], parts[stage - 1]);
  }
  parts.back() = first + layers.of_layer.size() + (layers.of_head.empty() ? 0 : 1);
  return json_text(Json{{"num_stages", plan.stages.size()},
                        {"parts", parts},
                        {"stages", stage_devices(problem, plan)}},
                   2) +
         '\n';
}

}  // namespace placewright
