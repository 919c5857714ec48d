// Memory with seeded values for what a part reads from outside.

#pragma once

#include <vector>

#include "backends/inputs.h"
#include "backends/runtime.h"

namespace placewright {

// The type of a tensor of the model.
const TensorType& type_of(const ModelGraph& graph, const TensorKey& tensor);

// By input of the model.
std::vector<Bytes> seeded_inputs(const ModelGraph& graph, std::uint64_t seed);

// By input of the part.
std::vector<Bytes> seeded_inputs(const ModelGraph& graph, const CompiledPart& part);

// A request with these inputs, which must outlive it.
std::unique_ptr<Request> request_with(CompiledPart& part, const std::vector<Bytes>& inputs);

}  // namespace placewright
