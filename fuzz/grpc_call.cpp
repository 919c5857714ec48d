// The decoder of requests over gRPC: whatever the message, it answers with a call or with
// BadInference. What it unpacks is no larger than what the message can hold, and a call that fits a
// model has the model's bytes.

#include "server/grpc_call.h"

#include <inference.pb.h>

#include "reading.h"

namespace {

placewright::ModelGraph two_inputs() {
  placewright::ModelGraph graph;
  for (const char* name : {"x", "y"}) {
    placewright::GraphInput& input = graph.inputs.emplace_back();
    input.name = name;
    input.type.element = "f32";
    input.type.shape = {2};
    input.type.bytes = 8;
  }
  return graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace placewright;
  static const ModelGraph graph = two_inputs();
  inference::ModelInferRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  try {
    const InferenceCall call = server::call_of(request);
    std::size_t bytes = 0;
    for (const InferenceInput& input : call.inputs) {
      for (const std::byte each : input.data) bytes += static_cast<std::size_t>(each) & 1U;
    }
    fuzzing::require(bytes <= 8 * (size + 1));
    for (const auto& fitted : fitted_call(graph, call)) fuzzing::require(fitted.size() == 8);
  } catch (const BadInference&) {
  }
  return 0;
}
