// Values for what a part reads from outside, in the memory that it computes in.

#pragma once

#include <memory>
#include <vector>

#include "backends/inputs.h"
#include "backends/runtime.h"
#include "machine/targets.h"

namespace placewright {

using Buffers = std::vector<std::unique_ptr<Buffer>>;

// The type of a tensor of the model.
const TensorType& type_of(const ModelGraph& graph, const TensorKey& tensor);

// The bytes in memory that backends take without copying.
HostBuffer host_buffer(std::span<const std::byte> bytes);

// In host memory.
HostBuffer read_back(Buffer& buffer, const Target& target);

// By input of the model: what is given (fitted_inputs), and seeded values for the others.
Buffers model_inputs(const ModelGraph& graph, const NamedArrays& given, std::uint64_t seed,
                     const Target& target);
Buffers seeded_inputs(const ModelGraph& graph, std::uint64_t seed, const Target& target);

// By input of the part, which was compiled for the target.
Buffers seeded_inputs(const ModelGraph& graph, const CompiledPart& part, const Target& target);

// A request with these inputs, which must outlive it.
std::unique_ptr<Request> request_with(CompiledPart& part, const Buffers& inputs);

}  // namespace placewright
