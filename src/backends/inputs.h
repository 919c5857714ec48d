// Inputs of models, given or from a seed, and how far apart two outputs are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "formats/array.h"
#include "problem/problem.h"

namespace placewright {

// Real inputs are spread evenly over [-1, 1); whole ones over [0, 100), which any vocabulary has,
// but for masks (by name) and booleans, which are 1, and token types, which are 0 or 1. Throws
// std::invalid_argument for text.
HostBuffer seeded_input(const GraphInput& input, std::uint64_t seed);

// In the order of the models, as by_model and with_model_names take them.
std::vector<std::string> model_names(const Problem& problem);

// The arrays by model. With several models a name begins with its model's, "bert:ids"; with one it
// may. Throws std::invalid_argument for a name that does not, and for an input given twice.
std::vector<NamedArrays> by_model(std::span<const std::string> models, const NamedArrays& arrays);

// The other way round.
NamedArrays with_model_names(std::span<const std::string> models,
                             const std::vector<NamedArrays>& arrays);

// The arrays as inputs of the model, converted where that loses nothing (formats/array_files.h).
// The name "" is the only input. Throws std::invalid_argument naming an input that the model does
// not have, that takes something else, or that is given twice.
NamedArrays fitted_inputs(const ModelGraph& graph, const NamedArrays& given);

// The largest difference, relative to the largest value of `expected` (whole numbers: 0 or 1).
double difference(const TensorType& type, std::span<const std::byte> expected,
                  std::span<const std::byte> found);

}  // namespace placewright
