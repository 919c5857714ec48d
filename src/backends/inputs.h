// Inputs from a seed, and how far apart two outputs are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/runtime.h"

namespace placewright {

// Memory on a page boundary, as OpenVINO takes without copying.
class Bytes {
 public:
  explicit Bytes(std::size_t count);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

// Real inputs are spread evenly over [-1, 1); whole ones over [0, 100), which any vocabulary has,
// but for masks (by name) and booleans, which are 1, and token types, which are 0 or 1. Throws
// std::invalid_argument for text.
Bytes seeded_input(const GraphInput& input, std::uint64_t seed);

// The largest difference, relative to the largest value of `expected` (whole numbers: 0 or 1).
double difference(const TensorType& type, std::span<const std::byte> expected,
                  std::span<const std::byte> found);

}  // namespace placewright
