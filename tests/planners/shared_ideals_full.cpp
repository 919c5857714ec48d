// Contiguous pipelines on nested sets of cores against brute force.

#include <gtest/gtest.h>

#include "planners/shared_ideals_checks.h"

namespace placewright {
namespace {

TEST(SharedIdealsAtLength, AgreeWithBruteForce) {
  const testing::SharedIdealsAgreement agreement = testing::shared_ideals_agreement(1000, 5000);
  EXPECT_GT(agreement.served, 3500);
  EXPECT_GE(agreement.proved, agreement.served * 99 / 100);
}

}  // namespace
}  // namespace placewright
