#include "backends/openvino/flops.h"

#include <openvino/op/ops.hpp>

namespace placewright::openvino {
namespace {

double elements(const ov::Shape& shape) {
  return static_cast<double>(ov::shape_size(shape));
}

double product_from(const ov::Shape& shape, std::size_t first) {
  double product = 1;
  for (std::size_t i = first; i < shape.size(); ++i) product *= static_cast<double>(shape[i]);
  return product;
}

double matrix_product(const ov::op::v0::MatMul& node) {
  const ov::Shape& left = node.get_input_shape(0);
  if (left.empty()) return 2;
  const std::size_t inner =
      left.size() == 1 || !node.get_transpose_a() ? left.size() - 1 : left.size() - 2;
  return 2 * elements(node.get_output_shape(0)) * static_cast<double>(left[inner]);
}

double pooling(const ov::Node& node) {
  const double out = elements(node.get_output_shape(0));
  if (const auto* maximum = ov::as_type<const ov::op::util::MaxPoolBase>(&node)) {
    return out * product_from(maximum->get_kernel(), 0);
  }
  if (const auto* average = ov::as_type<const ov::op::util::AvgPoolBase>(&node)) {
    return out * product_from(average->get_kernel(), 0);
  }
  return out;
}

bool moves_only(const ov::Node& node) {
  return ov::is_type<ov::op::v1::Reshape>(&node) || ov::is_type<ov::op::v0::Squeeze>(&node) ||
         ov::is_type<ov::op::v0::Unsqueeze>(&node) || ov::is_type<ov::op::v1::Transpose>(&node) ||
         ov::is_type<ov::op::v0::Concat>(&node) || ov::is_type<ov::op::v1::Split>(&node) ||
         ov::is_type<ov::op::v1::VariadicSplit>(&node) ||
         ov::is_type<ov::op::v1::StridedSlice>(&node) || ov::is_type<ov::op::v8::Slice>(&node) ||
         ov::is_type<ov::op::v8::Gather>(&node);
}

}  // namespace

double estimated_flops(const ov::Node& node) {
  if (node.get_output_size() == 0 || moves_only(node)) return 0;
  const double out = elements(node.get_output_shape(0));
  if (ov::is_type<ov::op::v1::Convolution>(&node)) {
    return 2 * out * product_from(node.get_input_shape(1), 1);  // weights: out, in, kernel
  }
  if (ov::is_type<ov::op::v1::GroupConvolution>(&node)) {
    return 2 * out * product_from(node.get_input_shape(1), 2);  // weights: group, out, in, kernel
  }
  if (ov::is_type<ov::op::v1::ConvolutionBackpropData>(&node)) {
    return 2 * elements(node.get_input_shape(0)) * product_from(node.get_input_shape(1), 1);
  }
  if (const auto* product = ov::as_type<const ov::op::v0::MatMul>(&node)) {
    return matrix_product(*product);
  }
  return pooling(node);
}

}  // namespace placewright::openvino
