#include "profiling/cut_widths.h"

#include <array>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::ElementsAre;

// A cost with one trial that is predicted so far off.
CutCost cost_of(GroupEntries groups, double error) {
  CutCost cost;
  cost.groups = std::move(groups);
  CutTrial& trial = cost.trials.emplace_back();
  trial.segments = 2;
  trial.time = {.median = 10, .low = 10, .high = 10, .kept = 20};
  trial.predicted = 10 * (1 + error);
  cost.whole = trial.time;
  return cost;
}

CutCost measured_cost(GroupEntries groups) {
  CutCost cost = cost_of(std::move(groups), 0);
  cost.apart = cost.whole;
  return cost;
}

TEST(CutWidths, InterpolationIsLinearInTheLogarithm) {
  const GroupEntries narrow{0.1, {1, 4}};
  const GroupEntries wide{0.5, {3, 0}};
  const GroupEntries found = interpolated(narrow, 1, wide, 16, 4);
  EXPECT_DOUBLE_EQ(found.call, 0.3);
  EXPECT_THAT(found.entries, ElementsAre(2, 2));
  EXPECT_DOUBLE_EQ(interpolated(narrow, 1, wide, 16, 16).call, 0.5);
}

CutCost disturbed(CutCost cost) {
  Measured& trial = cost.trials.front().time;
  trial.rejected = 2 * trial.kept;
  return cost;
}

// Which places were measured, with these trials between the ends.
std::set<std::size_t> measured_places(const std::vector<std::size_t>& cores,
                                      const std::function<CutCost(GroupEntries)>& trial,
                                      std::vector<CutCost>* costs = nullptr) {
  std::set<std::size_t> measured;
  const std::vector<CutCost> found = cuts_of_widths(
      cores,
      {.measure =
           [&](std::size_t place) {
             measured.insert(place);
             return measured_cost({static_cast<double>(cores[place]), {1}});
           },
       .attempt = [&](std::size_t, GroupEntries supposed) { return trial(std::move(supposed)); }});
  if (costs != nullptr) *costs = found;
  return measured;
}

// The same, if they are predicted so far off.
std::set<std::size_t> measured_places(const std::vector<std::size_t>& cores, double error,
                                      std::vector<CutCost>* costs = nullptr) {
  return measured_places(
      cores, [&](GroupEntries supposed) { return cost_of(std::move(supposed), error); }, costs);
}

TEST(CutWidths, OnlyTheEndsAreMeasuredWhereTheTrialsAreAsPredicted) {
  std::vector<CutCost> costs;
  EXPECT_THAT(measured_places({1, 2, 4, 8, 16}, 0.01, &costs), ElementsAre(0, 4));
  ASSERT_EQ(costs.size(), 5U);
  for (std::size_t place = 0; place < costs.size(); ++place) {
    EXPECT_EQ(costs[place].apart.has_value(), place == 0 || place == 4);
  }
  EXPECT_DOUBLE_EQ(costs[2].groups.call, 8.5);
}

TEST(CutWidths, WhatIsPredictedBadlyIsMeasured) {
  EXPECT_THAT(measured_places({1, 2, 4, 8, 16}, 0.2), ElementsAre(0, 1, 2, 3, 4));
}

TEST(CutWidths, WhereTheTrialsWereDisturbedItIsMeasuredToo) {
  const auto trial = [](GroupEntries supposed) {
    return disturbed(cost_of(std::move(supposed), 0));
  };
  EXPECT_THAT(measured_places({1, 2, 4}, trial), ElementsAre(0, 1, 2));
}

TEST(CutWidths, FewSizesAreAllMeasured) {
  EXPECT_TRUE(measured_places({}, 0).empty());
  EXPECT_THAT(measured_places({4}, 0), ElementsAre(0));
  EXPECT_THAT(measured_places({1, 2}, 0), ElementsAre(0, 1));
}

}  // namespace
}  // namespace placewright
