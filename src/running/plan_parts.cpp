#include "running/plan_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "backends/opened_models.h"
#include "backends/part_inputs.h"
#include "formats/input_error.h"
#include "formats/onnx_model.h"
#include "running/segments.h"

namespace placewright {
namespace {

// One model cut by the segments of a plan. Ops are numbers in the model's graph.
struct ModelCut {
  ModelId model;
  std::string name;
  const ModelGraph& graph;
  std::vector<const Segment*> segments;
  std::vector<std::vector<std::size_t>> ops;  // by segment
  std::vector<std::size_t> segment_of;        // by op
};

ModelCut cut_of(const Problem& problem, ModelId id, const NeuralModel& model,
                const std::vector<Segment>& segments) {
  ModelCut cut{.model = id,
               .name = problem.model(id).name,
               .graph = model.graph(),
               .segments = {},
               .ops = {},
               .segment_of = std::vector<std::size_t>(model.graph().ops.size(), 0)};
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t op = 0; op < cut.graph.ops.size(); ++op) {
    numbers.emplace(cut.graph.ops[op].name, op);
  }
  for (const Segment& segment : segments) {
    if (segment.model != id) continue;
    std::vector<std::size_t> ops;
    for (const OpId op : segment.ops) {
      ops.push_back(numbers.at(name_in_model(problem, op)));
      cut.segment_of[ops.back()] = cut.segments.size();
    }
    cut.segments.push_back(&segment);
    cut.ops.push_back(std::move(ops));
  }
  return cut;
}

// Who reads and makes what, by the names of tensors: `from` and `to` of all ports.
void connect(std::vector<PlanPart>& parts, std::size_t first) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> made;  // part, output
  for (std::size_t part = first; part < parts.size(); ++part) {
    for (std::size_t i = 0; i < parts[part].outputs.size(); ++i) {
      made[parts[part].outputs[i].tensor] = {part, i};
    }
  }
  for (std::size_t part = first; part < parts.size(); ++part) {
    for (PartPort& input : parts[part].inputs) {
      const auto found = made.find(input.tensor);
      if (found == made.end()) continue;
      input.from = found->second.first;
      parts[*input.from].outputs[found->second.second].to.push_back(part);
    }
  }
}

std::string name_of_output(const ModelGraph& graph, const TensorKey& tensor) {
  for (const GraphOutput& output : graph.outputs) {
    if (output.tensor == tensor) return output.name;
  }
  return {};
}

void add_backend_parts(const ModelCut& cut, const NeuralModel& model,
                       std::vector<PlanPart>& parts) {
  for (std::size_t i = 0; i < cut.segments.size(); ++i) {
    SerialisedPart written = model.serialised_part(cut.ops[i]);
    PlanPart part{.model = cut.model,
                  .devices = cut.segments[i]->devices,
                  .ops = cut.ops[i].size(),
                  .ending = ".xml",
                  .file = std::move(written.model),
                  .inputs = {},
                  .outputs = {}};
    for (const TensorKey& tensor : written.inputs) {
      part.inputs.push_back(
          {.tensor = name_of_tensor(cut.graph, tensor), .type = type_of(cut.graph, tensor)});
    }
    for (const TensorKey& tensor : written.outputs) {
      part.outputs.push_back({.tensor = name_of_tensor(cut.graph, tensor),
                              .type = type_of(cut.graph, tensor),
                              .model_output = name_of_output(cut.graph, tensor)});
    }
    parts.push_back(std::move(part));
  }
}

// An ONNX file, its nodes shared out over the segments.
class OnnxCut {
 public:
  OnnxCut(const ModelCut& cut, const std::string& path) : cut_(cut), path_(path), file_(path) {
    for (std::size_t node = 0; node < file_.nodes().size(); ++node) {
      for (const std::string& tensor : file_.nodes()[node].makes) maker_[tensor] = node;
    }
    order_nodes();
    find_constants();
    share_out();
  }

  void add_parts(std::vector<PlanPart>& parts) const {
    for (std::size_t segment = 0; segment < cut_.segments.size(); ++segment) {
      if (nodes_of(segment).empty()) continue;  // its ops are parts of nodes that are elsewhere
      parts.push_back(part_of(segment));
    }
  }

  [[nodiscard]] AnnotatedOnnx annotated(
      std::string_view key, const std::function<std::string(DeviceId)>& label_of) const {
    std::vector<std::string> labels(file_.nodes().size());
    for (std::size_t node = 0; node < labels.size(); ++node) {
      if (constant_[node] != 0) continue;
      labels[node] = label_of(cut_.segments[segment_[node]]->devices.front());
    }
    return {file_.annotated(key, labels), file_.has_files_beside()};
  }

 private:
  // Files need not be in topological order, though nearly all are.
  void order_nodes() {
    std::vector<char> state(file_.nodes().size(), 0);
    std::vector<std::size_t> open;
    for (std::size_t root = 0; root < state.size(); ++root) {
      open.push_back(root);
      while (!open.empty()) {
        const std::size_t node = open.back();
        if (state[node] == 0) {
          state[node] = 1;
          for (const std::string& tensor : file_.nodes()[node].reads) {
            const auto found = maker_.find(tensor);
            if (found != maker_.end() && state[found->second] == 0) open.push_back(found->second);
          }
          continue;
        }
        open.pop_back();
        if (state[node] == 1) order_.push_back(node);
        state[node] = 2;
      }
    }
  }

  [[nodiscard]] const TensorKey* key_of(const std::string& tensor) const {
    const auto found = cut_.graph.tensor_names.find(tensor);
    return found == cut_.graph.tensor_names.end() ? nullptr : &found->second;
  }

  // The shape that a node asks for, where the model's shapes are fixed and so it is known.
  [[nodiscard]] std::optional<std::vector<long>> known_shape(const OnnxNode& node) const {
    if (node.type != "Shape" || node.reads.empty()) return std::nullopt;
    const TensorKey* read = key_of(node.reads.front());
    if (read == nullptr) return std::nullopt;
    const std::vector<std::size_t>& shape = type_of(cut_.graph, *read).shape;
    const auto rank = static_cast<long>(shape.size());
    const auto attributes = whole_attributes(node);
    const auto place = [&](const std::string& name, long otherwise) {
      const auto found = attributes.find(name);
      const long stated = found == attributes.end() ? otherwise : found->second;
      return std::clamp(stated < 0 ? stated + rank : stated, 0L, rank);
    };
    const long first = place("start", 0);
    const long last = std::max(first, place("end", rank));
    return std::vector<long>(shape.begin() + first, shape.begin() + last);
  }

  void find_constants() {
    constant_.assign(file_.nodes().size(), 0);
    for (const std::size_t number : order_) {
      const OnnxNode& node = file_.nodes()[number];
      if (auto shape = known_shape(node)) {
        shapes_.emplace(number, std::move(*shape));
        constant_[number] = 1;
        continue;
      }
      constant_[number] = std::ranges::all_of(
          node.reads, [&](const std::string& tensor) { return is_constant(tensor); });
    }
  }
  [[nodiscard]] bool is_constant(const std::string& tensor) const {
    if (file_.is_weight(tensor)) return true;
    const auto found = maker_.find(tensor);
    return found != maker_.end() && constant_[found->second] != 0;
  }

  void share_out() {
    constexpr auto kNowhere = static_cast<std::size_t>(-1);
    segment_.assign(file_.nodes().size(), kNowhere);
    for (const std::size_t node : order_) {
      for (const std::string& tensor : file_.nodes()[node].makes) {
        const TensorKey* key = key_of(tensor);
        if (constant_[node] != 0 || key == nullptr || key->is_model_input()) continue;
        const std::size_t segment = cut_.segment_of[key->op];
        segment_[node] = segment_[node] == kNowhere ? segment : std::max(segment_[node], segment);
      }
    }
    // What is no op goes to its first reader.
    std::vector<std::size_t> earliest(file_.nodes().size(), kNowhere);
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      if (segment_[*node] == kNowhere) segment_[*node] = earliest[*node];
      for (const std::string& tensor : file_.nodes()[*node].reads) {
        const auto maker = maker_.find(tensor);
        if (maker == maker_.end()) continue;
        earliest[maker->second] = std::min(earliest[maker->second], segment_[*node]);
      }
    }
    // Nobody reads from a later part.
    for (const std::size_t node : order_) {
      if (segment_[node] == kNowhere) segment_[node] = 0;
      for (const std::string& tensor : file_.nodes()[node].reads) {
        const auto maker = maker_.find(tensor);
        if (maker == maker_.end() || constant_[maker->second] != 0) continue;
        segment_[node] = std::max(segment_[node], segment_[maker->second]);
      }
    }
  }

  [[nodiscard]] std::vector<std::size_t> nodes_of(std::size_t segment) const {
    std::vector<std::size_t> nodes;
    for (const std::size_t node : order_) {
      if (constant_[node] == 0 && segment_[node] == segment) nodes.push_back(node);
    }
    return nodes;
  }

  // The constant nodes that these read, directly or not; known shapes become vectors.
  void add_constants(const std::vector<std::size_t>& nodes, OnnxPart& part) const {
    std::set<std::size_t> wanted;
    std::vector<std::size_t> open = nodes;
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      for (const std::string& tensor : file_.nodes()[node].reads) {
        const auto maker = maker_.find(tensor);
        if (maker == maker_.end() || constant_[maker->second] == 0) continue;
        const auto shape = shapes_.find(maker->second);
        if (shape != shapes_.end()) {
          part.vectors.emplace(tensor, shape->second);
        } else if (wanted.insert(maker->second).second) {
          open.push_back(maker->second);
        }
      }
    }
    for (const std::size_t node : order_) {
      if (wanted.contains(node)) part.nodes.push_back(node);
    }
  }

  [[nodiscard]] PartPort port_of(const std::string& tensor) const {
    const TensorKey* key = key_of(tensor);
    if (key == nullptr) {
      throw InputError(path_, "",
                       fmt::format("cannot be cut at the tensor '{}', whose type is not known: "
                                   "use '--to openvino'",
                                   tensor));
    }
    return {.tensor = tensor, .type = type_of(cut_.graph, *key)};
  }

  [[nodiscard]] bool leaves(const std::string& tensor, std::size_t segment) const {
    for (std::size_t node = 0; node < file_.nodes().size(); ++node) {
      if (constant_[node] != 0 || segment_[node] == segment) continue;
      if (std::ranges::count(file_.nodes()[node].reads, tensor) > 0) return true;
    }
    return false;
  }

  [[nodiscard]] PlanPart part_of(std::size_t segment) const {
    const std::vector<std::size_t> nodes = nodes_of(segment);
    PlanPart part{.model = cut_.model,
                  .devices = cut_.segments[segment]->devices,
                  .ops = cut_.ops[segment].size(),
                  .ending = ".onnx",
                  .file = {},
                  .inputs = {},
                  .outputs = {}};
    OnnxPart written{.name = fmt::format("{} part {}", cut_.name, segment + 1)};
    add_constants(nodes, written);
    written.nodes.insert(written.nodes.end(), nodes.begin(), nodes.end());
    const auto write_port = [](const PartPort& port) {
      return OnnxPort{port.tensor, port.type.element, port.type.shape};
    };
    std::set<std::string> seen;
    for (const std::size_t node : nodes) {
      for (const std::string& tensor : file_.nodes()[node].reads) {
        const auto maker = maker_.find(tensor);
        const bool inside = maker != maker_.end() && segment_[maker->second] == segment;
        if (is_constant(tensor) || inside || !seen.insert(tensor).second) continue;
        part.inputs.push_back(port_of(tensor));
        written.inputs.push_back(write_port(part.inputs.back()));
      }
    }
    for (const std::size_t node : nodes) {
      for (const std::string& tensor : file_.nodes()[node].makes) {
        const bool given = std::ranges::count(file_.outputs(), tensor) > 0;
        if (!given && !leaves(tensor, segment)) continue;
        part.outputs.push_back(port_of(tensor));
        if (given) part.outputs.back().model_output = tensor;
        written.outputs.push_back(write_port(part.outputs.back()));
      }
    }
    part.file.graph = file_.part(written);
    return part;
  }

  const ModelCut& cut_;
  const std::string& path_;
  OnnxModel file_;
  std::map<std::string, std::size_t> maker_;         // by tensor, the node
  std::vector<std::size_t> order_;                   // topological
  std::vector<char> constant_;                       // by node
  std::map<std::size_t, std::vector<long>> shapes_;  // nodes whose value is a known shape
  std::vector<std::size_t> segment_;                 // by node
};

}  // namespace

std::vector<PlanPart> plan_parts(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models) {
  const std::vector<Segment> segments = segments_of(problem, plan);
  std::vector<PlanPart> parts;
  for (const ModelId id : problem.models()) {
    const std::size_t first = parts.size();
    const ModelCut cut = cut_of(problem, id, *models[id.index()], segments);
    const std::string& path = problem.model(id).source->path;
    if (path.ends_with(".onnx")) {
      OnnxCut(cut, path).add_parts(parts);
    } else {
      add_backend_parts(cut, *models[id.index()], parts);
    }
    connect(parts, first);
  }
  return parts;
}

AnnotatedOnnx annotated_onnx(const Problem& problem, const Plan& plan, const NeuralModel& model,
                             std::string_view key,
                             const std::function<std::string(DeviceId)>& label_of) {
  const ModelId id{0};
  const std::vector<Segment> segments = segments_of(problem, plan);
  const ModelCut cut = cut_of(problem, id, model, segments);
  return OnnxCut(cut, problem.model(id).source->path).annotated(key, label_of);
}

}  // namespace placewright
