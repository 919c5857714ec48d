#include "backends/part_inputs.h"

#include <algorithm>

#include "backends/target_devices.h"

namespace placewright {
namespace {

// Brings values into the memory of a target; without a copy if that is the host's.
class Placing {
 public:
  explicit Placing(const Target& target) : target_(target), space_(device_of(target).space) {}

  [[nodiscard]] std::unique_ptr<Buffer> operator()(HostBuffer values) const {
    if (space_.is_host()) return std::make_unique<HostBuffer>(std::move(values));
    const Runtime& runtime = runtime_named(target_.backend);
    std::unique_ptr<Buffer> buffer = runtime.allocate(target_.device, values.size());
    runtime.copy(values, *buffer);
    return buffer;
  }

 private:
  const Target& target_;
  MemorySpace space_;
};

}  // namespace

const TensorType& type_of(const ModelGraph& graph, const TensorKey& tensor) {
  return tensor.is_model_input() ? graph.inputs[tensor.port].type
                                 : graph.ops[tensor.op].outputs[tensor.port];
}

HostBuffer host_buffer(std::span<const std::byte> bytes) {
  HostBuffer buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.bytes().begin());
  return buffer;
}

HostBuffer read_back(Buffer& buffer, const Target& target) {
  HostBuffer values(buffer.size());
  runtime_named(target.backend).copy(buffer, values);
  return values;
}

Buffers model_inputs(const ModelGraph& graph, const NamedArrays& given, std::uint64_t seed,
                     const Target& target) {
  Buffers inputs;
  const Placing placed(target);
  for (const GraphInput& input : graph.inputs) {
    const auto found = given.find(input.name);
    inputs.push_back(placed(found == given.end() ? seeded_input(input, seed)
                                                 : host_buffer(found->second.bytes)));
  }
  return inputs;
}

Buffers seeded_inputs(const ModelGraph& graph, std::uint64_t seed, const Target& target) {
  return model_inputs(graph, {}, seed, target);
}

Buffers seeded_inputs(const ModelGraph& graph, const CompiledPart& part, const Target& target) {
  Buffers inputs;
  const Placing placed(target);
  for (const TensorKey& tensor : part.inputs()) {
    const std::string name =
        tensor.is_model_input() ? graph.inputs[tensor.port].name : graph.ops[tensor.op].name;
    inputs.push_back(placed(seeded_input({name, type_of(graph, tensor)}, inputs.size() + 1)));
  }
  return inputs;
}

std::unique_ptr<Request> request_with(CompiledPart& part, const Buffers& inputs) {
  std::unique_ptr<Request> request = part.request();
  for (std::size_t i = 0; i < inputs.size(); ++i) request->bind_input(i, *inputs[i]);
  return request;
}

}  // namespace placewright
