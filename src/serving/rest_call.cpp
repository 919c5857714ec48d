#include "serving/rest_call.h"

#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "formats/json.h"
#include "serving/json_numbers.h"

namespace placewright {
namespace {

template <class Number>
Number number_from(JsonValue value) {
  if constexpr (std::is_floating_point_v<Number>) {
    return static_cast<Number>(value.number());
  } else if constexpr (std::is_same_v<Number, std::uint64_t>) {
    return value.natural();
  } else {
    return static_cast<Number>(
        value.integer(std::numeric_limits<Number>::min(),
                      static_cast<std::int64_t>(std::numeric_limits<Number>::max())));
  }
}

// Nested lists are as good as flat ones.
template <class Read>
void append_numbers(JsonValue data, const Read& read, std::vector<std::byte>& bytes) {
  for (const JsonValue value : data.elements()) {
    if (value.is_array()) {
      append_numbers(value, read, bytes);
      continue;
    }
    const auto number = read(value);
    const auto* raw = reinterpret_cast<const std::byte*>(&number);
    bytes.insert(bytes.end(), raw, raw + sizeof(number));
  }
}

std::vector<std::byte> bytes_of_json(JsonValue data, const InferenceInput& input) {
  std::vector<std::byte> bytes;
  if (input.datatype == "BOOL") {
    // true and false, or 1 and 0.
    append_numbers(
        data, [](JsonValue value) { return std::uint8_t{value.flag()}; }, bytes);
    return bytes;
  }
  const bool known = with_number_type(
      input.datatype, [&](auto zero) { append_numbers(data, number_from<decltype(zero)>, bytes); });
  if (!known) {
    throw BadInference(fmt::format("the input '{}': {} cannot be sent as JSON, send binary data",
                                   input.name, input.datatype));
  }
  return bytes;
}

std::optional<JsonValue> parameter(JsonValue object, std::string_view name) {
  const auto parameters = object.find("parameters");
  if (!parameters) return std::nullopt;
  return parameters->find(name);
}

class RestReader {
 public:
  RestReader(std::string_view body, std::size_t header) : binary_(body.substr(header)) {}

  InferenceCall read(JsonValue root) {
    if (const auto id = root.find("id")) call_.id = id->id();
    for (const JsonValue input : root.at("inputs").elements()) add_input(input);
    if (!binary_.empty()) {
      throw BadInference(fmt::format("{} bytes of binary data belong to no input", binary_.size()));
    }
    if (const auto outputs = root.find("outputs")) {
      for (const JsonValue output : outputs->elements()) {
        const auto binary = parameter(output, "binary_data");
        call_.outputs.push_back({std::string(output.at("name").text()), binary && binary->flag()});
      }
    }
    if (const auto binary = parameter(root, "binary_data_output")) {
      call_.binary_outputs = binary->flag();
    }
    // Microseconds, as Triton has it.
    if (const auto timeout = parameter(root, "timeout")) call_.timeout = timeout->amount() / 1000;
    return std::move(call_);
  }

 private:
  void add_input(JsonValue json) {
    InferenceInput& input = call_.inputs.emplace_back();
    input.name = json.at("name").text();
    input.datatype = json.at("datatype").text();
    for (const JsonValue size : json.at("shape").elements()) {
      input.shape.push_back(size.integer(0, std::numeric_limits<std::int64_t>::max()));
    }
    if (const auto size = parameter(json, "binary_data_size")) {
      const std::uint64_t bytes = size->natural();
      if (bytes > binary_.size()) {
        throw BadInference(
            fmt::format("the input '{}' states {} bytes of binary data, the body "
                        "has {} left",
                        input.name, bytes, binary_.size()));
      }
      input.data = std::as_bytes(std::span(binary_.data(), bytes));
      binary_.remove_prefix(bytes);
      return;
    }
    // Vectors keep their elements where they are when they move.
    input.data = call_.storage.emplace_back(bytes_of_json(json.at("data"), input));
  }

  std::string_view binary_;
  InferenceCall call_;
};

}  // namespace

InferenceCall parse_rest_call(std::string_view body, std::optional<std::size_t> header) {
  const std::size_t length = header.value_or(body.size());
  if (length > body.size()) {
    throw BadInference(fmt::format("Inference-Header-Content-Length is {}, the body has {} bytes",
                                   length, body.size()));
  }
  try {
    const JsonDocument document(body.substr(0, length), "request");
    return RestReader(body, length).read(document.root());
  } catch (const InputError& error) {
    throw BadInference(error.what());
  }
}

}  // namespace placewright
