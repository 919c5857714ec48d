#include "machine/core_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CoresOfThisProcess, AreProbedAllAtOnce) {
  const std::vector<int> cores = allowed_cores();
  const std::vector<CoreShare> shares = probe_cores(cores);
  ASSERT_EQ(shares.size(), cores.size());
  for (const CoreShare& share : shares) {
    EXPECT_GE(share.elapsed, kProbe);
    EXPECT_GT(share.processor, 0);
    EXPECT_GT(share.work, 0);
  }
}

TEST(CoresOfThisProcess, AreNoneOfADeviceThatIsNoSetOfCores) {
  const Target device{"toy", "toy:0", {}};
  EXPECT_THAT(doubt_of(CoreCheck(std::span(&device, 1)).evidence()), IsEmpty());
}

}  // namespace
}  // namespace placewright
