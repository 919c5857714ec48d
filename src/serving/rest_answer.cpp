#include "serving/rest_answer.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/part_inputs.h"
#include "formats/json.h"
#include "serving/json_numbers.h"

namespace placewright {
namespace {

void append_json_data(std::string& text, std::string_view datatype, const std::string& name,
                      std::span<const std::byte> data) {
  const bool known = with_number_type(datatype, [&](auto value) {
    for (std::size_t at = 0; at + sizeof(value) <= data.size(); at += sizeof(value)) {
      std::memcpy(&value, data.data() + at, sizeof(value));
      if (at > 0) text += ',';
      if (datatype == "BOOL") {
        text += value != decltype(value){0} ? "true" : "false";
      } else if constexpr (std::is_floating_point_v<decltype(value)>) {
        text += std::isfinite(value) ? fmt::format("{}", value) : "null";
      } else {
        text += fmt::format("{}", value);
      }
    }
  });
  if (!known) {
    throw BadInference(fmt::format(
        "the output '{}': {} cannot be sent as JSON, ask for binary data", name, datatype));
  }
}

}  // namespace

RestAnswer rest_answer(const ModelGraph& graph, const InferenceCall& call,
                       const std::string& version,
                       std::span<const std::span<const std::byte>> outputs) {
  std::string text = "{";
  if (!call.id.empty()) {
    text += "\"id\":";
    append_quoted(text, call.id);
    text += ',';
  }
  text += "\"model_name\":";
  append_quoted(text, call.model);
  text += ",\"model_version\":";
  append_quoted(text, version);
  text += ",\"outputs\":[";
  std::string binary;
  bool any_binary = false;
  const char* before = "";
  for (const ChosenOutput& chosen : chosen_outputs(graph, call)) {
    const GraphOutput& output = graph.outputs[chosen.number];
    const TensorType& type = type_of(graph, output.tensor);
    const std::string_view datatype = datatype_of(type.element);
    const std::span<const std::byte> data = outputs[chosen.number];
    text += std::exchange(before, ",");
    text += "{\"name\":";
    append_quoted(text, output.name);
    text +=
        fmt::format(",\"datatype\":\"{}\",\"shape\":[{}],", datatype, fmt::join(type.shape, ","));
    if (chosen.binary) {
      text += fmt::format("\"parameters\":{{\"binary_data_size\":{}}}}}", data.size());
      binary.append(reinterpret_cast<const char*>(data.data()), data.size());
      any_binary = true;
    } else {
      text += "\"data\":[";
      append_json_data(text, datatype, output.name, data);
      text += "]}";
    }
  }
  text += "]}";
  RestAnswer answer{.body = std::move(text), .header = std::nullopt};
  if (any_binary) answer.header = answer.body.size();
  answer.body += binary;
  return answer;
}

}  // namespace placewright
