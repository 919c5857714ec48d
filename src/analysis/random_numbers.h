// Random numbers that are the same on every machine: std::mt19937_64 (its output is fixed by the
// standard) mapped by integer arithmetic.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace placewright {

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : engine_(seed) {}

  // 0 .. count-1
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  // least .. most
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  // Whether an event of this probability happens.
  bool chance(double probability) {
    return static_cast<double>(engine_() >> 11U) * 0x1p-53 < probability;
  }
  // Every octave of [least, least * 2^octaves) is equally likely; spreads costs as real ones are.
  std::uint64_t spread(std::uint64_t least, unsigned octaves) {
    const std::uint64_t octave = least << below(octaves);
    return octave + octave * below(1024) / 1024;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace placewright
