#include "backends/openvino/core_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openvino/op/ops.hpp>

#include "backends/openvino/borders.h"
#include "backends/openvino/core_part.h"
#include "backends/openvino/flops.h"
#include "backends/openvino/helper_threads.h"
#include "formats/input_error.h"

namespace placewright::openvino {
namespace {

bool is_parameter(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Parameter>(&node);
}
bool is_result(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Result>(&node);
}
bool is_constant(const ov::Node& node) {
  return ov::is_type<ov::op::v0::Constant>(&node);
}

TensorType type_of(const ov::Output<ov::Node>& tensor) {
  const ov::element::Type element = tensor.get_element_type();
  TensorType type;
  type.element = element.get_type_name();
  type.kind = element == ov::element::string    ? ElementKind::text
              : element == ov::element::boolean ? ElementKind::boolean
              : element.is_real()               ? ElementKind::real
                                                : ElementKind::integer;
  type.shape.assign(tensor.get_shape().begin(), tensor.get_shape().end());
  type.bytes = static_cast<double>(ov::shape_size(tensor.get_shape())) *
               static_cast<double>(element.bitwidth()) / 8;
  return type;
}

std::string tensor_name(const ov::Output<ov::Node>& tensor) {
  const auto& names = tensor.get_names();
  if (names.empty()) return tensor.get_node()->get_friendly_name();
  return *std::min_element(names.begin(), names.end());
}

bool supports(const ov::Core& core, const std::string& device, const std::string& property) {
  const std::vector<ov::PropertyName> known = core.get_property(device, ov::supported_properties);
  return std::find(known.begin(), known.end(), property) != known.end();
}

struct PrecisionName {
  Precision precision;
  ov::element::Type type;
  const char* capability;  // as devices list it
};
const std::array<PrecisionName, 3> kPrecisions{{
    {Precision::f32, ov::element::f32, "FP32"},
    {Precision::bf16, ov::element::bf16, "BF16"},
    {Precision::f16, ov::element::f16, "FP16"},
}};

// Nothing where the device is to choose. Throws RuntimeError for what it does not have.
ov::AnyMap properties_of(Precision precision, const ov::Core& core, const std::string& device) {
  if (precision == Precision::by_default) return {};
  const std::vector<std::string> able = core.get_property(device, ov::device::capabilities);
  std::vector<std::string_view> names;
  ov::AnyMap properties;
  for (const PrecisionName& each : kPrecisions) {
    if (std::ranges::find(able, each.capability) == able.end()) continue;
    names.push_back(name_of(each.precision));
    if (each.precision == precision) properties = {ov::hint::inference_precision(each.type)};
  }
  if (!properties.empty() && supports(core, device, ov::hint::inference_precision.name())) {
    return properties;
  }
  throw RuntimeError(fmt::format("'{}' does not compute in {} here, only in: {}", device,
                                 name_of(precision), fmt::join(names, ", ")));
}

SerialisedModel written(const std::shared_ptr<ov::Model>& model) {
  std::ostringstream graph;
  std::ostringstream weights;
  try {
    ov::pass::Serialize(graph, weights).run_on_model(model);
  } catch (const std::exception& error) {
    throw RuntimeError(fmt::format("OpenVINO cannot write the model: {}", error.what()));
  }
  return {std::move(graph).str(), std::move(weights).str()};
}

// A constant subgraph for another model. Constants share their bytes with the original.
ov::Output<ov::Node> copy_constant(const ov::Output<ov::Node>& tensor,
                                   std::map<const ov::Node*, std::shared_ptr<ov::Node>>& copies) {
  const ov::Node* node = tensor.get_node();
  std::shared_ptr<ov::Node>& copy = copies[node];
  if (!copy) {
    ov::OutputVector inputs;
    for (const auto& input : node->input_values()) inputs.push_back(copy_constant(input, copies));
    copy = node->clone_with_new_inputs(inputs);
    copy->set_friendly_name(node->get_friendly_name());
    copy->get_rt_info() = node->get_rt_info();
  }
  return copy->output(tensor.get_index());
}

}  // namespace

CoreModel::CoreModel(ov::Core& core, std::shared_ptr<ov::Model> model, Precision precision)
    : core_(core), model_(std::move(model)), precision_(precision) {
  find_constants();
  build_graph();
}

void CoreModel::find_constants() {
  for (const auto& node : model_->get_ordered_ops()) {
    const auto inputs = node->input_values();
    constant_[node.get()] =
        is_constant(*node) || (!inputs.empty() && !is_result(*node) &&
                               std::all_of(inputs.begin(), inputs.end(), [&](const auto& input) {
                                 return constant_.at(input.get_node());
                               }));
  }
}

void CoreModel::name_ops() {
  std::unordered_set<std::string> taken;
  for (const auto& node : nodes_) {
    // The backend joins the names of fused ops by commas.
    std::string name = node->get_friendly_name();
    std::replace(name.begin(), name.end(), ',', ';');
    std::string unique = name;
    for (int copy = 2; !taken.insert(unique).second; ++copy)
      unique = fmt::format("{}#{}", name, copy);
    if (unique != node->get_friendly_name()) node->set_friendly_name(unique);
  }
}

void CoreModel::build_graph() {
  graph_.name = model_->get_friendly_name();
  const auto inputs = model_->inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    graph_.inputs.push_back({tensor_name(inputs[i]), type_of(inputs[i])});
    numbers_.emplace(inputs[i].get_node(), i);
    for (const std::string& name : inputs[i].get_names()) {
      graph_.tensor_names[name] = {TensorKey::kModelInput, i};
    }
  }
  for (const auto& node : model_->get_ordered_ops()) {
    if (constant_.at(node.get()) || is_parameter(*node) || is_result(*node)) continue;
    numbers_.emplace(node.get(), nodes_.size());
    nodes_.push_back(node);
  }
  name_ops();
  for (const auto& node : nodes_) add_op(node);
  for (const auto& result : model_->get_results()) {
    const auto tensor = result->input_value(0);
    if (constant_.at(tensor.get_node())) continue;  // an output that no op makes
    graph_.outputs.push_back({tensor_name(result->output(0)), key_of(tensor)});
  }
  add_weights();
  images_ = images_of(graph_);
}

TensorKey CoreModel::key_of(const ov::Output<ov::Node>& tensor) const {
  const std::size_t number = numbers_.at(tensor.get_node());
  if (is_parameter(*tensor.get_node())) return {TensorKey::kModelInput, number};
  return {number, tensor.get_index()};
}

void CoreModel::add_op(const std::shared_ptr<ov::Node>& node) {
  GraphOp op{.name = node->get_friendly_name(), .type = node->get_type_name()};
  for (const auto& input : node->input_values()) {
    if (constant_.at(input.get_node())) continue;
    const TensorKey key = key_of(input);
    if (std::find(op.inputs.begin(), op.inputs.end(), key) == op.inputs.end()) {
      op.inputs.push_back(key);
    }
  }
  for (const auto& output : node->outputs()) {
    op.outputs.push_back(type_of(output));
    for (const std::string& name : output.get_names()) graph_.tensor_names[name] = key_of(output);
  }
  op.flops = estimated_flops(*node);
  graph_.ops.push_back(std::move(op));
}

void CoreModel::add_weights() {
  std::unordered_map<const ov::Node*, std::size_t> weights;
  for (std::size_t op = 0; op < nodes_.size(); ++op) {
    std::vector<const ov::Node*> open;
    std::unordered_set<const ov::Node*> seen;
    const auto visit = [&](const ov::Node& node) {
      for (const auto& input : node.input_values()) {
        if (constant_.at(input.get_node()) && seen.insert(input.get_node()).second) {
          open.push_back(input.get_node());
        }
      }
    };
    visit(*nodes_[op]);
    while (!open.empty()) {
      const ov::Node* node = open.back();
      open.pop_back();
      visit(*node);
      if (!is_constant(*node)) continue;
      const auto [found, added] = weights.emplace(node, graph_.weights.size());
      if (added) {
        const auto& constant = static_cast<const ov::op::v0::Constant&>(*node);
        graph_.weights.push_back(
            {node->get_friendly_name(), static_cast<double>(constant.get_byte_size()), {}});
      }
      graph_.weights[found->second].ops.push_back(op);
    }
  }
}

CoreModel::Part CoreModel::whole() const {
  Part part{model_, {}, {}};
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    part.inputs.push_back({TensorKey::kModelInput, i});
  }
  for (const auto& result : model_->get_results()) {
    const auto tensor = result->input_value(0);
    // A constant output keeps its place, under the key of no tensor.
    part.outputs.push_back(constant_.at(tensor.get_node()) ? TensorKey{} : key_of(tensor));
  }
  return part;
}

CoreModel::Part CoreModel::part(std::span<const std::size_t> ops,
                                const std::set<TensorKey>& channels_last) const {
  const std::set<std::size_t> chosen(ops.begin(), ops.end());
  Part part;
  ov::ParameterVector parameters;
  ov::ResultVector results;
  std::map<TensorKey, ov::Output<ov::Node>> made;
  std::map<TensorKey, ImageInput> images;
  std::map<const ov::Node*, std::shared_ptr<ov::Node>> constants;

  const auto add_input = [&](const TensorKey& key,
                             const std::shared_ptr<ov::op::v0::Parameter>& parameter) {
    parameter->set_friendly_name(fmt::format("input {}", part.inputs.size()));
    parameters.push_back(parameter);
    part.inputs.push_back(key);
  };
  const auto input_of = [&](const ov::Output<ov::Node>& tensor,
                            const ov::Node& reader) -> ov::Output<ov::Node> {
    if (constant_.at(tensor.get_node())) return copy_constant(tensor, constants);
    const TensorKey key = key_of(tensor);
    if (const auto found = made.find(key); found != made.end()) return found->second;
    if (channels_last.contains(key)) {
      const auto [image, added] = images.try_emplace(key, tensor);
      if (added) add_input(key, image->second.parameter());
      return image->second.read_by(reader);
    }
    const auto parameter = std::make_shared<ov::op::v0::Parameter>(tensor.get_element_type(),
                                                                   tensor.get_partial_shape());
    add_input(key, parameter);
    return made.emplace(key, parameter->output(0)).first->second;
  };
  // Ascending numbers are a topological order.
  for (const std::size_t op : chosen) {
    const auto& node = nodes_[op];
    ov::OutputVector inputs;
    for (const auto& input : node->input_values()) inputs.push_back(input_of(input, *node));
    const auto copy = node->clone_with_new_inputs(inputs);
    copy->set_friendly_name(node->get_friendly_name());
    copy->get_rt_info() = node->get_rt_info();
    for (std::size_t port = 0; port < copy->get_output_size(); ++port) {
      made.emplace(TensorKey{op, port}, copy->output(port));
    }
  }
  const auto leaves = [&](const ov::Output<ov::Node>& tensor) {
    for (const auto& reader : tensor.get_target_inputs()) {
      if (is_result(*reader.get_node())) return true;
      if (!chosen.contains(numbers_.at(reader.get_node()))) return true;
    }
    return false;
  };
  for (const std::size_t op : chosen) {
    for (const auto& output : nodes_[op]->outputs()) {
      if (!leaves(output)) continue;
      const TensorKey key{op, output.get_index()};
      const ov::Output<ov::Node>& tensor = made.at(key);
      results.push_back(std::make_shared<ov::op::v0::Result>(
          channels_last.contains(key) ? with_channels_last(tensor) : tensor));
      results.back()->set_friendly_name(fmt::format("output {}", part.outputs.size()));
      part.outputs.push_back(key);
    }
  }
  part.model = std::make_shared<ov::Model>(results, parameters, graph_.name);
  return part;
}

std::unique_ptr<CompiledPart> CoreModel::compile(std::span<const std::size_t> ops,
                                                 const CompileOptions& options) const {
  const auto cut = [&] {
    return this->part(ops, keeps_channels_last(core_) ? images_ : std::set<TensorKey>{});
  };
  Part part = ops.size() == nodes_.size() ? whole() : cut();
  ov::AnyMap properties =
      properties_of(options.precision.value_or(precision_), core_, options.device);
  if (options.counters) properties.insert(ov::enable_profiling(true));
  if (options.hint) {
    properties.insert(ov::hint::performance_mode(*options.hint == Hint::latency
                                                     ? ov::hint::PerformanceMode::LATENCY
                                                     : ov::hint::PerformanceMode::THROUGHPUT));
  } else if (options.device == "CPU") {
    if (options.threads > 1) make_helper_threads(core_);
    properties.insert({ov::hint::enable_cpu_pinning(options.pinned),
                       ov::num_streams(options.streams),
                       ov::inference_num_threads(options.threads)});
  }
  try {
    return std::make_unique<CorePart>(core_.compile_model(part.model, options.device, properties),
                                      std::move(part.inputs), std::move(part.outputs));
  } catch (const ov::Exception& error) {
    throw RuntimeError(fmt::format("{} ops cannot be compiled for {}: {}", ops.size(),
                                   options.device, error.what()));
  }
}

std::vector<std::size_t> CoreModel::unsupported(const std::string& device) const {
  const auto supported = core_.query_model(model_, device);
  std::vector<std::size_t> ops;
  for (std::size_t op = 0; op < nodes_.size(); ++op) {
    if (!supported.contains(nodes_[op]->get_friendly_name())) ops.push_back(op);
  }
  return ops;
}

SerialisedModel CoreModel::serialised() const {
  // The pass may write to the model that it is given.
  return written(model_->clone());
}

SerialisedPart CoreModel::serialised_part(std::span<const std::size_t> ops) const {
  Part chosen = part(ops, {});
  for (std::size_t i = 0; i < chosen.inputs.size(); ++i) {
    chosen.model->input(i).set_names({name_of_tensor(graph_, chosen.inputs[i])});
  }
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    chosen.model->output(i).set_names({name_of_tensor(graph_, chosen.outputs[i])});
  }
  return {written(chosen.model), std::move(chosen.inputs), std::move(chosen.outputs)};
}

}  // namespace placewright::openvino
