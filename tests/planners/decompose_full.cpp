#include <gtest/gtest.h>

#include "planners/decompose_checks.h"

namespace placewright {
namespace {

TEST(DecomposeAtLength, AgreesWithBruteForce) {
  for (std::uint64_t seed = 1000; seed <= 6000; ++seed) testing::expect_decompose_agrees(seed);
}

}  // namespace
}  // namespace placewright
