// Thousands of small sets of models against brute force.

#include <gtest/gtest.h>

#include "planners/flow/completion_checks.h"

namespace placewright {
namespace {

TEST(SeveralModelsFull, ExactAsBruteForce) {
  for (std::uint64_t seed = 1000; seed < 3500; ++seed) testing::expect_exact_and_bounded(seed);
}

}  // namespace
}  // namespace placewright
