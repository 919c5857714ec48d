#include "profiling/loading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Target>& targets) {
  std::vector<std::string> names;
  for (const Target& target : targets) names.push_back(name_of(target));
  return names;
}

TEST(SideBySide, SetsOfTheSameSizeComeFirstAndOthersFillTheRest) {
  const std::vector<Target> nested{target_of_cores({0, 1, 2, 3}), target_of_cores({0, 1}),
                                   target_of_cores({2, 3}), target_of_cores({0}),
                                   target_of_cores({1})};
  EXPECT_THAT(names_of(side_by_side(nested, 0)), ElementsAre("cpu:0-3"));
  EXPECT_THAT(names_of(side_by_side(nested, 1)), ElementsAre("cpu:0-1", "cpu:2-3"));
  EXPECT_THAT(names_of(side_by_side(nested, 3)), ElementsAre("cpu:0", "cpu:1", "cpu:2-3"));
}

TEST(Loading, AGroupThatIsSlowedDownHasAFactorOfItsOwn) {
  const std::vector<OpGroup> groups{{0, 1}, {2}};
  const std::vector<double> alone{4, 4, 8};
  const std::vector<double> factors = factors_of_groups(groups, alone, {4, 4, 12}, 1.25);
  EXPECT_NEAR(factors[0], 1, 0.01);
  EXPECT_EQ(factors[0], factors[1]);
  EXPECT_NEAR(factors[2], 1.5, 0.01);
  double sum = 0;
  for (std::size_t op = 0; op < alone.size(); ++op) sum += alone[op] * factors[op];
  EXPECT_DOUBLE_EQ(sum, 16 * 1.25) << "as the latency says";
}

TEST(Loading, NoGroupIsFasterThanAlone) {
  const std::vector<OpGroup> groups{{0, 1}, {2}};
  const std::vector<double> alone{4, 4, 8};
  const std::vector<double> factors = factors_of_groups(groups, alone, {4, 4, 12}, 1.1);
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(factors[1], 1);
  EXPECT_DOUBLE_EQ(factors[2], 1.2) << "it bears what the others cannot give";
  EXPECT_THAT(factors_of_groups(groups, alone, {4, 4, 12}, 1), Each(1));
}

TEST(Loading, TheCountersOfASmallGroupSayLittle) {
  const std::vector<double> factors = factors_of_groups({{0}, {1}}, {10, 0.001}, {12, 0.004}, 1.2);
  EXPECT_NEAR(factors[1], 1.2, 0.2) << "not four times as long";
  EXPECT_THAT(factors_of_groups({{0}, {1}}, {0, 0}, {0, 0}, 1.2), Each(1.2));
}

TEST(Loading, TheErrorIsHowFarSegmentsAreOff) {
  const std::vector<SegmentLoading> trial{
      {.alone = 1, .loaded = 1, .ops_alone = 2, .ops_loaded = 2},
      {.alone = 1, .loaded = 3, .ops_alone = 2, .ops_loaded = 4}};
  EXPECT_DOUBLE_EQ(error_of_one_factor(trial, 2), 0.5);  // 1 and 1 of 4
  EXPECT_DOUBLE_EQ(error_of_own_factors(trial), 0.25);   // 0 and 1 of 4
  EXPECT_EQ(error_of_one_factor({}, 2), 0);
}

TEST(Turns, AModelAfterAnotherIsNotFaster) {
  EXPECT_EQ((TurnTimes{.first = {.median = 3}, .again = {.median = 2}}.factor()), 1.5);
  EXPECT_EQ((TurnTimes{.first = {.median = 2}, .again = {.median = 3}}.factor()), 1);
  EXPECT_EQ(TurnTimes{}.factor(), 1);
}

}  // namespace
}  // namespace placewright
