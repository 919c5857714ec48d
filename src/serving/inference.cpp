#include "serving/inference.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {
namespace {

struct DatatypeRow {
  std::string_view element;   // as backends call it
  std::string_view datatype;  // as the protocol does
  std::size_t size;
};

constexpr auto kDatatypes = std::to_array<DatatypeRow>({{"boolean", "BOOL", 1},
                                                        {"u8", "UINT8", 1},
                                                        {"u16", "UINT16", 2},
                                                        {"u32", "UINT32", 4},
                                                        {"u64", "UINT64", 8},
                                                        {"i8", "INT8", 1},
                                                        {"i16", "INT16", 2},
                                                        {"i32", "INT32", 4},
                                                        {"i64", "INT64", 8},
                                                        {"f16", "FP16", 2},
                                                        {"bf16", "BF16", 2},
                                                        {"f32", "FP32", 4},
                                                        {"f64", "FP64", 8}});

template <class Ports>
std::vector<std::string> names_of_ports(const Ports& ports) {
  std::vector<std::string> names;
  for (const auto& port : ports) names.push_back(port.name);
  return names;
}

void check_input(const GraphInput& input, const InferenceInput& given) {
  const std::string_view wanted = datatype_of(input.type.element);
  if (given.datatype != wanted) {
    throw BadInference(
        fmt::format("the input '{}' takes {}, found {}", input.name, wanted, given.datatype));
  }
  if (!std::ranges::equal(given.shape, input.type.shape, [](std::int64_t a, std::size_t b) {
        return a >= 0 && static_cast<std::size_t>(a) == b;
      })) {
    throw BadInference(fmt::format("the input '{}' has the shape [{}], found [{}]", input.name,
                                   fmt::join(input.type.shape, ", "),
                                   fmt::join(given.shape, ", ")));
  }
  const auto bytes = static_cast<std::size_t>(input.type.bytes);
  if (given.data.size() != bytes) {
    throw BadInference(fmt::format("the input '{}' takes {} bytes, found {}", input.name, bytes,
                                   given.data.size()));
  }
}

}  // namespace

std::string_view datatype_of(std::string_view element) {
  const auto found = std::ranges::find(kDatatypes, element, &DatatypeRow::element);
  return found == kDatatypes.end() ? std::string_view() : found->datatype;
}

std::size_t size_of_datatype(std::string_view datatype) {
  const auto found = std::ranges::find(kDatatypes, datatype, &DatatypeRow::datatype);
  return found == kDatatypes.end() ? 0 : found->size;
}

std::vector<std::span<const std::byte>> fitted_call(const ModelGraph& graph,
                                                    const InferenceCall& call) {
  std::vector<std::span<const std::byte>> fitted(graph.inputs.size());
  std::vector<bool> seen(graph.inputs.size(), false);
  for (const InferenceInput& given : call.inputs) {
    const auto found = std::ranges::find(graph.inputs, given.name, &GraphInput::name);
    if (found == graph.inputs.end()) {
      throw BadInference(fmt::format("the model has no input '{}'; its inputs are: {}", given.name,
                                     fmt::join(names_of_ports(graph.inputs), ", ")));
    }
    const auto number = static_cast<std::size_t>(found - graph.inputs.begin());
    if (seen[number])
      throw BadInference(fmt::format("the request has the input '{}' twice", given.name));
    check_input(*found, given);
    seen[number] = true;
    fitted[number] = given.data;
  }
  const auto missing = std::ranges::find(seen, false);
  if (missing != seen.end()) {
    const auto number = static_cast<std::size_t>(missing - seen.begin());
    throw BadInference(fmt::format("the input '{}' is missing", graph.inputs[number].name));
  }
  return fitted;
}

std::vector<ChosenOutput> chosen_outputs(const ModelGraph& graph, const InferenceCall& call) {
  std::vector<ChosenOutput> chosen;
  if (call.outputs.empty()) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      chosen.push_back({i, call.binary_outputs});
    }
  }
  for (const WantedOutput& wanted : call.outputs) {
    const auto found = std::ranges::find(graph.outputs, wanted.name, &GraphOutput::name);
    if (found == graph.outputs.end()) {
      throw BadInference(fmt::format("the model has no output '{}'; its outputs are: {}",
                                     wanted.name, fmt::join(names_of_ports(graph.outputs), ", ")));
    }
    const auto number = static_cast<std::size_t>(found - graph.outputs.begin());
    // Else a small request could have an answer of any size.
    if (std::ranges::find(chosen, number, &ChosenOutput::number) != chosen.end()) {
      throw BadInference(fmt::format("the request has the output '{}' twice", wanted.name));
    }
    chosen.push_back({number, wanted.binary});
  }
  return chosen;
}

}  // namespace placewright
