// How a tensor looks at a border between parts of a model.
//
// Where a processor has vectors of 16 numbers, convolutions and pools keep images with their
// channels last, whatever the model says (NCHW). A part whose inputs and outputs are as the model
// says has to change the layout of each of them: that was most of what a cut cost. So images cross
// a border with their channels last, behind a Transpose that OpenVINO finds to be no work. It does
// so only between an op that has this layout and nobody else to read its result, and one that asks
// for it, a convolution; in the other cases a convolution comes between, of ones, each channel by
// itself: it has the layout and asks for it, and changes no value.

#pragma once

#include <map>
#include <set>

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

// Whether convolutions on this machine's cores do keep channels last: not on all processors. Found
// out once, by a small one.
bool keeps_channels_last(ov::Core& core);

// The tensors that convolutions, pools and what comes with them make and read, and nobody else.
std::set<TensorKey> images_of(const ModelGraph& graph);

// The image as the part's output; whoever else reads it in the part does so already.
ov::Output<ov::Node> with_channels_last(const ov::Output<ov::Node>& image);

// An image that is an input of a part.
class ImageInput {
 public:
  // `image`: as the model has it.
  explicit ImageInput(const ov::Output<ov::Node>& image);

  [[nodiscard]] const std::shared_ptr<ov::op::v0::Parameter>& parameter() const {
    return parameter_;
  }
  // As the model has it, for this op.
  ov::Output<ov::Node> read_by(const ov::Node& op);

 private:
  std::shared_ptr<ov::op::v0::Parameter> parameter_;
  std::map<bool, ov::Output<ov::Node>> views_;  // for those that take any layout, for others
};

}  // namespace placewright::openvino
