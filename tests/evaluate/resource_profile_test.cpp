#include "evaluate/resource_profile.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "support/random_problem.h"

namespace placewright {
namespace {

TEST(LevelProfile, AnEmptyProfileHasRoomAtOnce) {
  EXPECT_EQ(LevelProfile().earliest(3, 2, 0), 3);
}

TEST(LevelProfile, UsesTheGapBeforeWhatWasEnteredEarlier) {
  LevelProfile profile;
  profile.raise(0, 2, 1);
  profile.raise(5, 2, 1);
  EXPECT_EQ(profile.earliest(0, 3, 0), 2);
  EXPECT_EQ(profile.earliest(0, 4, 0), 7);
  EXPECT_EQ(profile.earliest(0, 4, 1), 0);
}

TEST(LevelProfile, TouchingIntervalsAreNoConflict) {
  LevelProfile profile;
  profile.raise(1, 2, 1);
  EXPECT_EQ(profile.earliest(3, 1, 0), 3);
  EXPECT_EQ(profile.earliest(0, 1, 0), 0);
}

// The definition, by looking at every moment at which a level can change.
double earliest_by_definition(const std::vector<std::vector<double>>& entered, double ready,
                              double length, double highest) {
  const auto level = [&](double time) {
    double sum = 0;
    for (const auto& e : entered) sum += e[0] <= time && time < e[0] + e[1] ? e[2] : 0;
    return sum;
  };
  std::vector<double> moments{ready};
  for (const auto& e : entered) moments.insert(moments.end(), {e[0], e[0] + e[1]});
  std::sort(moments.begin(), moments.end());
  for (const double start : moments) {
    if (start < ready || level(start) > highest) continue;
    const bool fits = std::all_of(moments.begin(), moments.end(), [&](double moment) {
      return moment <= start || moment >= start + length || level(moment) <= highest;
    });
    if (fits) return start;
  }
  return kInfinity;
}

TEST(LevelProfile, AgreesWithTheDefinitionOnRandomEntries) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    testing::RandomSource random(seed);
    LevelProfile profile;
    std::vector<std::vector<double>> entered;
    for (int i = 0; i < 12; ++i) {
      const auto number = [&](std::size_t most) { return static_cast<double>(random.below(most)); };
      const double ready = number(20);
      const double length = 1 + number(5);
      const double highest = number(3);
      ASSERT_EQ(profile.earliest(ready, length, highest),
                earliest_by_definition(entered, ready, length, highest))
          << "seed " << seed << ", entry " << i;
      entered.push_back({number(20), 1 + number(5), 1 + number(2)});
      profile.raise(entered.back()[0], entered.back()[1], entered.back()[2]);
    }
  }
}

TEST(LevelProfile, WhatIsTooShortToBeSeenOrNeverStartsLeavesNoTrace) {
  LevelProfile profile;
  profile.raise(0, 2, 1);
  profile.raise(1e18, 1, 1);
  profile.raise(kInfinity, 1, 1);
  EXPECT_EQ(profile.earliest(1e18, 5, 0), 1e18);
  EXPECT_EQ(profile.earliest(0, 1, 0), 2);
}

}  // namespace
}  // namespace placewright
