#include "backends/openvino/core_part.h"

#include <sstream>

#include <openvino/runtime/exception.hpp>

namespace placewright::openvino {
namespace {

std::string text_attribute(const ov::Node& node, const std::string& name) {
  const auto found = node.get_rt_info().find(name);
  return found == node.get_rt_info().end() ? std::string{} : found->second.as<std::string>();
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// OpenVINO's own word for it stays here: nobody else sees its headers.
template <class Inference>
void told_if_stopped(Inference inference) {
  try {
    inference();
  } catch (const ov::Cancelled&) {
    throw RequestStopped("the inference was stopped");
  }
}

}  // namespace

CoreRequest::CoreRequest(ov::InferRequest request) : request_(std::move(request)) {
  const std::size_t count = request_.get_compiled_model().outputs().size();
  for (std::size_t i = 0; i < count; ++i) outputs_.emplace_back(request_.get_output_tensor(i));
}

void CoreRequest::bind_input(std::size_t input, Buffer& buffer) {
  if (const auto* made_here = dynamic_cast<const TensorBuffer*>(&buffer)) {
    request_.set_input_tensor(input, made_here->tensor());
    return;
  }
  if (!buffer.space().is_host()) throw RuntimeError("OpenVINO reads tensors from host memory only");
  const auto port = request_.get_compiled_model().input(input);
  request_.set_input_tensor(
      input, ov::Tensor(port.get_element_type(), port.get_shape(), buffer.bytes().data()));
}

void CoreRequest::run() {
  told_if_stopped([this] { request_.infer(); });
}

void CoreRequest::wait() {
  told_if_stopped([this] { request_.wait(); });
}

std::vector<NodeTime> CoreRequest::times() const {
  std::vector<NodeTime> times;
  for (const ov::ProfilingInfo& info : request_.get_profiling_info()) {
    if (info.status != ov::ProfilingInfo::Status::EXECUTED) continue;
    times.push_back({info.node_name, static_cast<double>(info.real_time.count()) / 1000});
  }
  return times;
}

Precision CorePart::precision() const {
  try {
    const ov::element::Type type = compiled_.get_property(ov::hint::inference_precision);
    if (type == ov::element::f16) return Precision::f16;
    if (type == ov::element::bf16) return Precision::bf16;
  } catch (const ov::Exception&) {
    return Precision::f16;  // devices that do not tell (NPUs) compute in no more than this
  }
  return Precision::f32;
}

std::vector<ExecutedNode> CorePart::executed() const {
  std::vector<ExecutedNode> nodes;
  for (const auto& node : compiled_.get_runtime_model()->get_ordered_ops()) {
    ExecutedNode& executed = nodes.emplace_back();
    executed.name = node->get_friendly_name();
    executed.type = text_attribute(*node, "layerType");
    executed.originals = split_at_commas(text_attribute(*node, "originalLayersNames"));
    for (const auto& input : node->input_values()) {
      executed.inputs.push_back(input.get_node()->get_friendly_name());
    }
    if (node->get_output_size() == 1 && node->get_output_partial_shape(0).is_static()) {
      executed.elements = ov::shape_size(node->get_output_shape(0));
    }
  }
  return nodes;
}

std::unique_ptr<Request> CorePart::request() {
  return std::make_unique<CoreRequest>(compiled_.create_infer_request());
}

}  // namespace placewright::openvino
