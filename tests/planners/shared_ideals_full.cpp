// Contiguous pipelines on nested sets of cores against brute force.

#include <gtest/gtest.h>

#include "planners/shared_ideals_checks.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

TEST(SharedIdealsAtLength, AgreeWithBruteForce) {
  const testing::RandomCases cases = testing::random_cases();
  const testing::SharedIdealsAgreement agreement =
      testing::shared_ideals_agreement(cases.first, cases.last);
  EXPECT_GT(agreement.served, 800);
  EXPECT_GE(agreement.proved, agreement.served * 99 / 100);
}

}  // namespace
}  // namespace placewright
