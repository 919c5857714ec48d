#include "backends/part_inputs.h"
#include "server/grpc_call.h"

namespace placewright::server {

void fill_response(inference::ModelInferResponse& response, const ModelGraph& graph,
                   const InferenceCall& call, const std::string& version,
                   std::span<const std::span<const std::byte>> outputs) {
  response.set_model_name(call.model);
  response.set_model_version(version);
  response.set_id(call.id);
  for (const ChosenOutput& chosen : chosen_outputs(graph, call)) {
    const GraphOutput& output = graph.outputs[chosen.number];
    const TensorType& type = type_of(graph, output.tensor);
    auto& made = *response.add_outputs();
    made.set_name(output.name);
    made.set_datatype(std::string(datatype_of(type.element)));
    for (const std::size_t size : type.shape) made.add_shape(static_cast<std::int64_t>(size));
    const std::span<const std::byte> data = outputs[chosen.number];
    response.add_raw_output_contents()->assign(reinterpret_cast<const char*>(data.data()),
                                               data.size());
  }
}

}  // namespace placewright::server
