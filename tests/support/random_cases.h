// Which random cases a long test looks at: a thousand, and other ones each day.

#pragma once

#include <cstdint>
#include <ranges>

namespace placewright::testing {

// Numbers in a row, from which a test draws its problems.
struct RandomCases {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // the one after the last

  [[nodiscard]] auto begin() const { return std::views::iota(first, last).begin(); }
  [[nodiscard]] auto end() const { return std::views::iota(first, last).end(); }
};

// The cases of the seed in PLACEWRIGHT_SEED, or of today. Prints the seed, so that a failure can be
// seen again. The numbers are a million or more, since quick tests look at smaller ones.
RandomCases random_cases(std::uint64_t count = 1000);

}  // namespace placewright::testing
