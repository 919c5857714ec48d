// The messages of the protocol over gRPC as the records of serving/inference.h, and back.

#pragma once

#include <span>
#include <string>

#include <inference.pb.h>

#include "serving/inference.h"

namespace placewright::server {

// Refers to the request, which must outlive it. Throws BadInference.
InferenceCall call_of(const inference::ModelInferRequest& request);

// `outputs`: by output of the model.
void fill_response(inference::ModelInferResponse& response, const ModelGraph& graph,
                   const InferenceCall& call, const std::string& version,
                   std::span<const std::span<const std::byte>> outputs);

}  // namespace placewright::server
