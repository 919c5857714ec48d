#include "support/random_cases.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace placewright::testing {
namespace {

constexpr std::uint64_t kApart = 1'000'000;  // from the cases of one seed to those of the next

std::uint64_t seed_of_run() {
  const char* const text = std::getenv("PLACEWRIGHT_SEED");
  if (text == nullptr) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::days>(now).count());
  }
  const std::string_view digits = text;
  std::uint64_t seed = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size() || seed == 0) {
    throw std::invalid_argument(fmt::format("PLACEWRIGHT_SEED is '{}', expected 1 or more", text));
  }
  return seed;
}

}  // namespace

RandomCases random_cases(std::uint64_t count) {
  const std::uint64_t seed = seed_of_run();
  const RandomCases cases{seed * kApart, seed * kApart + count};
  fmt::print("random cases: {} from {} on; again with PLACEWRIGHT_SEED={}\n", count, cases.first,
             seed);
  return cases;
}

}  // namespace placewright::testing
