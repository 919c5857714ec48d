#include "server/grpc_call.h"

#include <fmt/format.h>

namespace placewright::server {
namespace {

template <class Number, class Values>
std::vector<std::byte> packed(const Values& values) {
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(values.size()) * sizeof(Number));
  for (const auto value : values) {
    const auto number = static_cast<Number>(value);
    const auto* raw = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), raw, raw + sizeof(number));
  }
  return bytes;
}

std::vector<std::byte> packed_contents(const std::string& name, const std::string& datatype,
                                       const inference::InferTensorContents& contents) {
  if (datatype == "BOOL") return packed<std::uint8_t>(contents.bool_contents());
  if (datatype == "INT8") return packed<std::int8_t>(contents.int_contents());
  if (datatype == "INT16") return packed<std::int16_t>(contents.int_contents());
  if (datatype == "INT32") return packed<std::int32_t>(contents.int_contents());
  if (datatype == "INT64") return packed<std::int64_t>(contents.int64_contents());
  if (datatype == "UINT8") return packed<std::uint8_t>(contents.uint_contents());
  if (datatype == "UINT16") return packed<std::uint16_t>(contents.uint_contents());
  if (datatype == "UINT32") return packed<std::uint32_t>(contents.uint_contents());
  if (datatype == "UINT64") return packed<std::uint64_t>(contents.uint64_contents());
  if (datatype == "FP32") return packed<float>(contents.fp32_contents());
  if (datatype == "FP64") return packed<double>(contents.fp64_contents());
  throw BadInference(
      fmt::format("the input '{}': {} must be sent as raw contents", name, datatype));
}

// Microseconds, as milliseconds.
double timeout_of(const inference::InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case inference::InferParameter::kInt64Param:
      return static_cast<double>(parameter.int64_param()) / 1000;
    case inference::InferParameter::kUint64Param:
      return static_cast<double>(parameter.uint64_param()) / 1000;
    default:
      throw BadInference("the parameter 'timeout' is not a whole number of microseconds");
  }
}

}  // namespace

InferenceCall call_of(const inference::ModelInferRequest& request) {
  InferenceCall call{.model = request.model_name(),
                     .version = request.model_version(),
                     .id = request.id(),
                     .binary_outputs = true};
  const bool raw = request.raw_input_contents_size() > 0;
  if (raw && request.raw_input_contents_size() != request.inputs_size()) {
    throw BadInference(fmt::format("the request has {} inputs and {} raw contents",
                                   request.inputs_size(), request.raw_input_contents_size()));
  }
  for (int i = 0; i < request.inputs_size(); ++i) {
    const auto& given = request.inputs(i);
    InferenceInput& input = call.inputs.emplace_back();
    input.name = given.name();
    input.datatype = given.datatype();
    input.shape.assign(given.shape().begin(), given.shape().end());
    if (raw) {
      const std::string& bytes = request.raw_input_contents(i);
      input.data = std::as_bytes(std::span(bytes.data(), bytes.size()));
    } else {
      input.data = call.storage.emplace_back(
          packed_contents(given.name(), given.datatype(), given.contents()));
    }
  }
  for (const auto& output : request.outputs()) call.outputs.push_back({output.name(), true});
  const auto timeout = request.parameters().find("timeout");
  if (timeout != request.parameters().end()) call.timeout = timeout_of(timeout->second);
  return call;
}

}  // namespace placewright::server
