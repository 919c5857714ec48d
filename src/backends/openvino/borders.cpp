#include "backends/openvino/borders.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <openvino/op/ops.hpp>

namespace placewright::openvino {
namespace {

// Elements of a vector register: channels that do not fill it are not kept last.
constexpr std::size_t kVector = 16;

enum class Role { makes_images, passes_images_on, other };

Role role_of(const std::string& type) {
  constexpr std::array<std::string_view, 4> kMakers{"Convolution", "GroupConvolution", "MaxPool",
                                                    "AvgPool"};
  constexpr std::array<std::string_view, 15> kPassers{
      "Add",     "Clamp", "Concat",   "Elu",   "Gelu", "HSigmoid", "HSwish", "Maximum",
      "Minimum", "Mish",  "Multiply", "PRelu", "Relu", "Sigmoid",  "Swish"};
  if (std::ranges::find(kMakers, type) != kMakers.end()) return Role::makes_images;
  if (std::ranges::find(kPassers, type) != kPassers.end()) return Role::passes_images_on;
  return Role::other;
}

bool has_shape_of_image(const TensorType& type) {
  return type.element == "f32" && type.shape.size() == 4 && type.shape[1] % kVector == 0;
}

// Named after what it changes nothing of: what the backend calls it must not be the name of an op.
ov::Output<ov::Node> named(const std::shared_ptr<ov::Node>& node, const char* what) {
  node->set_friendly_name(
      fmt::format("{} {}", node->get_input_node_ptr(0)->get_friendly_name(), what));
  return node->output(0);
}

ov::Output<ov::Node> transposed(const ov::Output<ov::Node>& tensor,
                                const std::vector<std::size_t>& order,
                                const char* what = "transposed") {
  const auto axes = ov::op::v0::Constant::create(ov::element::i64, {order.size()}, order);
  return named(std::make_shared<ov::op::v1::Transpose>(tensor, axes), what);
}

bool takes_any_layout(const std::string& type) {
  return type == "MaxPool" || type == "AvgPool" || type == "Concat";
}

// As the backend's own graph says it, for a convolution that it has compiled.
bool has_channels_last(const ov::CompiledModel& compiled) {
  for (const auto& node : compiled.get_runtime_model()->get_ops()) {
    const auto& attributes = node->get_rt_info();
    if (attributes.at("layerType").as<std::string>() != "Convolution") continue;
    return attributes.at("outputLayouts").as<std::string>() == "acdb";
  }
  return false;
}

// Each value times one.
ov::Output<ov::Node> unchanged(const ov::Output<ov::Node>& image) {
  const ov::Shape shape{image.get_shape()[1], 1, 1, 1, 1};
  const auto ones = ov::op::v0::Constant::create(image.get_element_type(), shape, {1});
  return named(std::make_shared<ov::op::v1::GroupConvolution>(
                   image, ones, ov::Strides{1, 1}, ov::CoordinateDiff{0, 0},
                   ov::CoordinateDiff{0, 0}, ov::Strides{1, 1}),
               "unchanged");
}

// Whether two images are added here, or before what is done with each value by itself: a
// convolution then adds its result to the other image, in the memory of that.
bool is_sum(const ov::Output<ov::Node>& image) {
  const ov::Node* node = image.get_node();
  while (node->get_input_size() == 1) node = node->get_input_node_ptr(0);
  return ov::is_type<ov::op::v1::Add>(node) && node->get_input_shape(0) == node->get_input_shape(1);
}

}  // namespace

bool keeps_channels_last(ov::Core& core) {
  static const bool found = [&] {
    constexpr std::size_t kChannels = 64;
    constexpr std::size_t kSize = 8;
    const auto image = std::make_shared<ov::op::v0::Parameter>(
        ov::element::f32, ov::Shape{1, kChannels, kSize, kSize});
    const auto weights =
        ov::op::v0::Constant::create(ov::element::f32, {kChannels, kChannels, 1, 1}, {1});
    const auto convolution = std::make_shared<ov::op::v1::Convolution>(
        image, weights, ov::Strides{1, 1}, ov::CoordinateDiff{0, 0}, ov::CoordinateDiff{0, 0},
        ov::Strides{1, 1});
    const auto model =
        std::make_shared<ov::Model>(convolution->outputs(), ov::ParameterVector{image});
    return has_channels_last(core.compile_model(
        model, "CPU",
        {ov::hint::inference_precision(ov::element::f32), ov::hint::enable_cpu_pinning(false),
         ov::num_streams(1), ov::inference_num_threads(1)}));
  }();
  return found;
}

std::set<TensorKey> images_of(const ModelGraph& graph) {
  std::set<TensorKey> made;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const GraphOp& each = graph.ops[op];
    const Role role = role_of(each.type);
    const bool image = role == Role::makes_images ||
                       (role == Role::passes_images_on &&
                        std::ranges::any_of(each.inputs, [&](const TensorKey& input) {
                          return made.contains(input);
                        }));
    if (image && has_shape_of_image(each.outputs.front())) made.insert({op, 0});
  }
  std::set<TensorKey> images = made;
  for (const GraphOp& op : graph.ops) {
    if (role_of(op.type) != Role::other) continue;
    for (const TensorKey& input : op.inputs) images.erase(input);
  }
  for (const GraphOutput& output : graph.outputs) images.erase(output.tensor);
  return images;
}

ov::Output<ov::Node> with_channels_last(const ov::Output<ov::Node>& image) {
  const bool by_itself = image.get_target_inputs().empty() && !is_sum(image);
  return transposed(by_itself ? image : unchanged(image), {0, 2, 3, 1});
}

ImageInput::ImageInput(const ov::Output<ov::Node>& image) {
  const ov::Shape& shape = image.get_shape();
  parameter_ = std::make_shared<ov::op::v0::Parameter>(
      image.get_element_type(), ov::Shape{shape[0], shape[2], shape[3], shape[1]});
}

ov::Output<ov::Node> ImageInput::read_by(const ov::Node& op) {
  const bool any = takes_any_layout(op.get_type_name());
  ov::Output<ov::Node>& view = views_[any];
  if (view.get_node() == nullptr) {
    // One for each: the backend joins a change of layout with the only op that reads it.
    view = transposed(parameter_->output(0), {0, 3, 1, 2}, any ? "transposed again" : "transposed");
    if (any) view = unchanged(view);
  }
  return view;
}

}  // namespace placewright::openvino
