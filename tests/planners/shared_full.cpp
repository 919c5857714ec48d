// Pipelines on shared resources against brute force, under every rule.

#include <gtest/gtest.h>

#include "planners/shared_checks.h"

namespace placewright {
namespace {

TEST(SharedPipelinesAtLength, ExhaustiveAgreesWithBruteForceAndTheSearchAlmostAlways) {
  const testing::SharedAgreement agreement = testing::shared_agreement(1000, 2200, 20000);
  EXPECT_GT(agreement.served, 900);
  EXPECT_GE(agreement.found, agreement.served * 98 / 100);
}

}  // namespace
}  // namespace placewright
