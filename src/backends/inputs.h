// Inputs from a seed, and how far apart two outputs are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/runtime.h"

namespace placewright {

// Real inputs are spread evenly over [-1, 1); whole ones over [0, 100), which any vocabulary has,
// but for masks (by name) and booleans, which are 1, and token types, which are 0 or 1. Throws
// std::invalid_argument for text.
HostBuffer seeded_input(const GraphInput& input, std::uint64_t seed);

// The largest difference, relative to the largest value of `expected` (whole numbers: 0 or 1).
double difference(const TensorType& type, std::span<const std::byte> expected,
                  std::span<const std::byte> found);

}  // namespace placewright
