// Estimated floating-point operations of an op: exact for convolutions and matrix products (a
// multiply and an add are two), one for each element of the output or of the window elsewhere.

#pragma once

#include <openvino/core/node.hpp>

namespace placewright::openvino {

double estimated_flops(const ov::Node& node);

}  // namespace placewright::openvino
