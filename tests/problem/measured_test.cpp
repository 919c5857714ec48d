#include "problem/measured.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

TEST(Measured, IsValidIfMostRunsWereKept) {
  EXPECT_TRUE(measured({10, 11, 12}, std::size_t{3}).valid());
  EXPECT_FALSE(measured({10, 11, 12}, std::size_t{4}).valid());
  EXPECT_FALSE(measured({10, 11}, std::size_t{1}).valid()) << "too few of those that were made";
  EXPECT_TRUE(measured({10}, std::size_t{0}).valid()) << "all that was asked for";
  EXPECT_FALSE(Measured{}.valid());
}

TEST(Measured, IsDisturbedIfTooFewWereKept) {
  const Measured few = measured({10, 20}, std::size_t{1});
  EXPECT_TRUE(few.disturbed());
  EXPECT_EQ(doubt_of(few), "1 of 3 runs were disturbed") << "whatever their spread";
  EXPECT_TRUE(Measured{}.disturbed());
  EXPECT_FALSE(measured({10, 20}, std::size_t{0}).disturbed());
}

TEST(Measured, IsNotValidIfTheKeptRunsDifferTooMuch) {
  const Measured wide = measured({10, 14, 20, 26, 30}, std::size_t{0});
  EXPECT_FALSE(wide.disturbed());
  EXPECT_FALSE(wide.valid());
  EXPECT_EQ(doubt_of(wide), "the undisturbed runs differ by 84 %");
  EXPECT_EQ(doubt_of(measured({10, 11, 12}, std::size_t{1})), "");
}

}  // namespace
}  // namespace placewright
