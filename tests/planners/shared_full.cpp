// Pipelines on shared resources against brute force, under every rule.

#include <gtest/gtest.h>

#include "planners/shared_checks.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

TEST(SharedPipelinesAtLength, ExhaustiveAgreesWithBruteForceAndTheSearchAlmostAlways) {
  const testing::RandomCases cases = testing::random_cases(500);
  const testing::SharedAgreement agreement =
      testing::shared_agreement(cases.first, cases.last, 20000);
  EXPECT_GT(agreement.served, 350);
  // 98 to 99 % in the long run; three standard deviations of a day's sample are 2 %.
  EXPECT_GE(agreement.found, agreement.served * 96 / 100);
}

}  // namespace
}  // namespace placewright
