// Inference requests of the Open Inference Protocol over HTTP: JSON, then the binary data of the
// tensors that say `binary_data_size`, in their order.
//
// In: POST /v2/models/NAME[/versions/V]/infer; the header Inference-Header-Content-Length says
// where JSON ends.

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serving/inference.h"

namespace placewright {

// `header`: bytes of JSON; nullopt: all of the body. The call refers to the body, which must
// outlive it. Throws BadInference.
InferenceCall parse_rest_call(std::string_view body, std::optional<std::size_t> header);

}  // namespace placewright
