#include "backends/part_inputs.h"

namespace placewright {

const TensorType& type_of(const ModelGraph& graph, const TensorKey& tensor) {
  return tensor.is_model_input() ? graph.inputs[tensor.port].type
                                 : graph.ops[tensor.op].outputs[tensor.port];
}

std::vector<Bytes> seeded_inputs(const ModelGraph& graph, std::uint64_t seed) {
  std::vector<Bytes> inputs;
  for (const GraphInput& input : graph.inputs) inputs.push_back(seeded_input(input, seed));
  return inputs;
}

std::vector<Bytes> seeded_inputs(const ModelGraph& graph, const CompiledPart& part) {
  std::vector<Bytes> inputs;
  for (const TensorKey& tensor : part.inputs()) {
    const std::string name =
        tensor.is_model_input() ? graph.inputs[tensor.port].name : graph.ops[tensor.op].name;
    inputs.push_back(seeded_input({name, type_of(graph, tensor)}, inputs.size() + 1));
  }
  return inputs;
}

std::unique_ptr<Request> request_with(CompiledPart& part, const std::vector<Bytes>& inputs) {
  std::unique_ptr<Request> request = part.request();
  for (std::size_t i = 0; i < inputs.size(); ++i) request->bind_input(i, inputs[i].data());
  return request;
}

}  // namespace placewright
