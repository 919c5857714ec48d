// The most devices that `generate` joins by links: a file of 300 MB, four million links in it.

#include <gtest/gtest.h>

#include "support/program.h"

namespace placewright::testing {
namespace {

TEST(LargestNumbers, WhatGenerateMakesCanBeRead) {
  const auto made = run({"generate", "chain", "--ops", "2", "--devices", "2048", "-o", "-"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(run({"info", "-"}, made.out).exit_code, 0);
}

}  // namespace
}  // namespace placewright::testing
