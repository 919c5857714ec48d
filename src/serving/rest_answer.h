// Answers of the Open Inference Protocol over HTTP, in the form of the requests (rest_call.h).

#pragma once

#include <optional>
#include <span>
#include <string>

#include "serving/inference.h"

namespace placewright {

struct RestAnswer {
  std::string body;
  std::optional<std::size_t> header;  // bytes of JSON where binary data follows
};

// `outputs`: by output of the model. Throws BadInference for a type that JSON cannot hold.
RestAnswer rest_answer(const ModelGraph& graph, const InferenceCall& call,
                       const std::string& version,
                       std::span<const std::span<const std::byte>> outputs);

}  // namespace placewright
