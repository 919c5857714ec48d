// Random numbers that are the same on every machine: std::mt19937_64 (its output is fixed by the
// standard) mapped by integer arithmetic. The library's distributions differ between libraries.

#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace placewright {

class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : engine_(seed) {}

  // All 64 bits, as the standard library's algorithms ask for them.
  using result_type = std::mt19937_64::result_type;
  static constexpr result_type min() { return std::mt19937_64::min(); }
  static constexpr result_type max() { return std::mt19937_64::max(); }
  result_type operator()() { return engine_(); }

  // 0 .. count-1
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  // least .. most
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  // [0, 1)
  double unit() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  // Whether an event of this probability happens.
  bool chance(double probability) { return unit() < probability; }
  // Every octave of [least, least * 2^octaves) is equally likely; spreads costs as real ones are.
  std::uint64_t spread(std::uint64_t least, unsigned octaves) {
    const std::uint64_t octave = least << below(octaves);
    return octave + octave * below(1024) / 1024;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace placewright
