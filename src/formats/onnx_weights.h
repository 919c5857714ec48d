// Weights of an ONNX model that lie in files beside it. A model may come from anywhere, so that
// such a file must lie in the model's folder or below it: no absolute path, no "..", and no link
// that leads out of it. Where the model itself is a link (as caches of downloads have it), the
// folder of the file that it leads to is as good.

#pragma once

#include <string>
#include <string_view>

namespace placewright {

// The values of such a tensor (a TensorProto). Throws InputError.
std::string external_values(std::string_view tensor, const std::string& model);

// For a file that another library will read. Throws InputError if one of its tensors lies elsewhere
// or in a file that is not there; what is no ONNX model passes.
void require_weights_beside(const std::string& model);

}  // namespace placewright
