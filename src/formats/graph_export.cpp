#include "formats/graph_export.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "formats/json_text.h"
#include "formats/plan_rows.h"
#include "formats/printable.h"
#include "problem/move_time.h"
#include "problem/op_times.h"

namespace placewright {
namespace {

using Json = nlohmann::ordered_json;

// Light enough for black text, told apart also without full colour vision (after Paul Tol's
// "light" scheme).
constexpr std::array<const char*, 9> kColours = {"#77aadd", "#ee8866", "#eedd88",
                                                 "#ffaabb", "#99ddff", "#44bb99",
                                                 "#bbcc33", "#aaaa00", "#dddddd"};

const char* colour_of(DeviceId device) {
  return kColours[device.index() % kColours.size()];
}

std::string dump(const Json& document) {
  return json_text(document, 1) + '\n';
}

// A quoted string of the dot language, in which the quote and the backslash are special.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char character : with_escapes(text)) {
    if (character == '"' || character == '\\') result += '\\';
    result += character == '\n' ? ' ' : character;
  }
  return result + '"';
}

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

class DotWriter {
 public:
  DotWriter(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan) {}

  std::string run() {
    text_ = fmt::format("digraph {} {{\n", quoted(problem_.name()));
    text_ += "  rankdir=TB; node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\"];\n";
    text_ += "  edge [fontname=\"Helvetica\", fontsize=10];\n";
    for (const DeviceId device : problem_.devices()) write_device(device);
    for (const TensorId tensor : problem_.tensors()) write_tensor(tensor);
    return text_ + "}\n";
  }

 private:
  [[nodiscard]] std::string device_title(DeviceId device) const {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      const auto& devices = plan_.stages[i].devices;
      if (devices.front() != device) continue;
      return fmt::format("stage {}: {} (load {})", i + 1,
                         fmt::join(device_names(problem_, devices), ", "),
                         number(plan_.stages[i].load));
    }
    return problem_.device(device).name;
  }

  void write_device(DeviceId device) {
    std::string nodes;
    for (const OpId op : problem_.topological_order()) {
      if (plan_.placement[op] != device) continue;
      nodes += fmt::format(
          "    o{} [label={}, fillcolor=\"{}\", tooltip={}];\n", op.index(),
          quoted(problem_.op(op).name), colour_of(device),
          quoted(fmt::format("{} on {}, time {}", problem_.op(op).name,
                             problem_.device(device).name, number(problem_.time(op, device)))));
    }
    if (nodes.empty()) return;
    text_ +=
        fmt::format("  subgraph cluster_{} {{\n    label={}; color=\"{}\"; penwidth=2;\n{}  }}\n",
                    device.index(), quoted(device_title(device)), colour_of(device), nodes);
  }

  void write_tensor(TensorId tensor) {
    const OpId producer = problem_.producer(tensor);
    const DeviceId from = plan_.placement[producer];
    for (const OpId consumer : problem_.consumers(tensor)) {
      const DeviceId to = plan_.placement[consumer];
      text_ += fmt::format("  o{} -> o{}", producer.index(), consumer.index());
      if (from != to) {
        text_ += fmt::format(" [penwidth=2, color=\"#cc3311\", label=\"{}\"]",
                             number(move_time(problem_, tensor, from, to)));
      }
      text_ += ";\n";
    }
  }

  const Problem& problem_;
  const Plan& plan_;
  std::string text_;
};

std::string graph_id(const Problem& problem, ModelId model) {
  const std::string& name = problem.model(model).name;
  return name.empty() ? fmt::format("model {}", model.index() + 1) : name;
}

Json attribute(const char* key, const std::string& value) {
  return {{"key", key}, {"value", value}};
}

// A slash would open another level of nesting.
std::string namespace_of(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

class ModelExplorerWriter {
 public:
  ModelExplorerWriter(const Problem& problem, const Plan& plan)
      : problem_(problem), plan_(plan), times_(op_times(problem, plan)) {}

  [[nodiscard]] Json graph(ModelId model) const {
    Json graph = {{"id", graph_id(problem_, model)}, {"nodes", Json::array()}};
    for (const OpId op : problem_.topological_order()) {
      if (problem_.op(op).model == model) graph["nodes"].push_back(node(op));
    }
    Json& groups = graph["groupNodeAttributes"];
    groups[""] = {{"objective", name_of(problem_.objective())},
                  {"value", number(plan_.value)},
                  {"unit", name_of(problem_.unit())}};
    return graph;
  }

  [[nodiscard]] Json node_data(ModelId model) const {
    // Names differ, so nothing is looked up: that would take the square of the ops.
    Json::object_t results;
    for (const OpId op : problem_.ops()) {
      if (problem_.op(op).model != model) continue;
      const DeviceId device = plan_.placement[op];
      results.emplace_back(problem_.op(op).name, Json{{"value", problem_.time(op, device)},
                                                      {"bgColor", colour_of(device)},
                                                      {"textColor", "black"}});
    }
    return {{"results", std::move(results)}};
  }

 private:
  [[nodiscard]] Json node(OpId op) const {
    const Op& record = problem_.op(op);
    const DeviceId device = plan_.placement[op];
    Json node = {{"id", record.name},
                 {"label", record.type.empty() ? record.name : record.type},
                 {"namespace", namespace_of(problem_.device(device).name)},
                 {"attrs", attributes(op, device)},
                 {"incomingEdges", Json::array()},
                 {"outputsMetadata", Json::array()},
                 {"style", {{"backgroundColor", colour_of(device)}}}};
    std::size_t input = 0;
    for (const TensorId tensor : problem_.inputs(op)) {
      const OpId producer = problem_.producer(tensor);
      node["incomingEdges"].push_back({{"sourceNodeId", problem_.op(producer).name},
                                       {"sourceNodeOutputId", output_number(producer, tensor)},
                                       {"targetNodeInputId", fmt::format("{}", input++)}});
    }
    for (const TensorId tensor : problem_.outputs(op)) {
      Json attrs = Json::array({attribute("bytes", number(problem_.tensor(tensor).bytes)),
                                attribute("__tensor_tag", tensor_name(problem_, tensor))});
      node["outputsMetadata"].push_back(
          {{"id", output_number(op, tensor)}, {"attrs", std::move(attrs)}});
    }
    return node;
  }

  [[nodiscard]] Json attributes(OpId op, DeviceId device) const {
    Json attrs = Json::array({attribute("device", problem_.device(device).name),
                              attribute("time", number(problem_.time(op, device))),
                              attribute("resident bytes", number(problem_.memory(op)))});
    if (problem_.objective() != Objective::throughput) {
      attrs.push_back(attribute("start", number(times_.start[op])));
      attrs.push_back(attribute("end", number(times_.end[op])));
    }
    return attrs;
  }

  [[nodiscard]] std::string output_number(OpId producer, TensorId tensor) const {
    const auto outputs = problem_.outputs(producer);
    const auto found = std::find(outputs.begin(), outputs.end(), tensor);
    return fmt::format("{}", found - outputs.begin());
  }

  const Problem& problem_;
  const Plan& plan_;
  OpTimes times_;
};

}  // namespace

std::string dot_text(const Problem& problem, const Plan& plan) {
  return DotWriter(problem, plan).run();
}

std::string model_explorer_graph(const Problem& problem, const Plan& plan) {
  const ModelExplorerWriter writer(problem, plan);
  Json document = {{"label", problem.name()}, {"graphs", Json::array()}};
  for (const ModelId model : problem.models()) document["graphs"].push_back(writer.graph(model));
  return dump(document);
}

std::string model_explorer_node_data(const Problem& problem, const Plan& plan) {
  const ModelExplorerWriter writer(problem, plan);
  Json document = Json::object();
  for (const ModelId model : problem.models()) {
    document[graph_id(problem, model)] = writer.node_data(model);
  }
  return dump(document);
}

}  // namespace placewright
