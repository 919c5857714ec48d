// A thousand small sets of models against brute force.

#include <gtest/gtest.h>

#include "planners/flow/completion_checks.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

TEST(SeveralModelsFull, ExactAsBruteForce) {
  for (const std::uint64_t seed : testing::random_cases()) testing::expect_exact_and_bounded(seed);
}

}  // namespace
}  // namespace placewright
