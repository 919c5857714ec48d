// What a client asks, as the Open Inference Protocol (version 2) has it, whichever way it came.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "backends/runtime.h"

namespace placewright {

// A request that cannot be served as it is: the client's mistake, in one sentence.
class BadInference : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// "FP32" for "f32"; empty: the protocol has no such type.
std::string_view datatype_of(std::string_view element);
// Bytes of one element; 0 for one that is unknown or of no fixed size.
std::size_t size_of_datatype(std::string_view datatype);

struct InferenceInput {
  std::string name;
  std::string datatype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

struct WantedOutput {
  std::string name;
  bool binary = false;
};

struct InferenceCall {
  std::string model;
  std::string version;  // empty: the newest
  std::string id;
  std::vector<InferenceInput> inputs;
  std::vector<WantedOutput> outputs;            // empty: all
  bool binary_outputs = false;                  // of all, where none is named
  std::optional<double> timeout;                // milliseconds
  std::vector<std::vector<std::byte>> storage;  // of data that did not come as bytes
};

// By input of the model, the client's bytes. Throws BadInference for a name, type, shape or size
// that is not the model's, and for an input that is missing or there twice.
std::vector<std::span<const std::byte>> fitted_call(const ModelGraph& graph,
                                                    const InferenceCall& call);

// Which outputs of the model are wanted, in which order. Throws BadInference for one that there is
// not, and for one that is there twice.
struct ChosenOutput {
  std::size_t number = 0;
  bool binary = false;
};
std::vector<ChosenOutput> chosen_outputs(const ModelGraph& graph, const InferenceCall& call);

}  // namespace placewright
