#include "running/turns.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

Measured turn_of(double milliseconds, std::size_t rejected = 0) {
  return measured({milliseconds}, rejected);
}

TEST(Turns, TheMedianOfThoseThatAreValidCounts) {
  const Measured value =
      over_turns({turn_of(4), turn_of(90, 2), turn_of(5), turn_of(80, 2), turn_of(6)});
  EXPECT_EQ(value.median, 5);
  EXPECT_EQ(value.kept, 5U);
  EXPECT_EQ(value.rejected, 4U);
  EXPECT_TRUE(value.valid());
}

TEST(Turns, AllCountWhereMostAreDisturbedAndTheValueIsNotValid) {
  const Measured value = over_turns({turn_of(4), turn_of(8, 2), turn_of(9, 2)});
  EXPECT_EQ(value.median, 8);
  EXPECT_FALSE(value.valid());
}

TEST(Turns, TheResultIsThatOfATypicalTurnWithTheOutputsOfTheFirst) {
  std::vector<RunResult> turns(3);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i].value = turn_of(std::vector<double>{7, 3, 5}[i]);
    turns[i].segment_times = {turns[i].value};
  }
  turns.front().outputs.compared = true;
  const RunResult result = over_turns(turns);
  EXPECT_EQ(result.value.median, 5);
  EXPECT_EQ(result.segment_times.front().median, 5);
  EXPECT_TRUE(result.outputs.compared);
  EXPECT_FALSE(result.interrupted);
}

TEST(Turns, WhatIsFarBehindInAllOfItsTurnsHasNoFurtherOnes) {
  EXPECT_FALSE(far_slower(std::vector{10.0}, 10));
  EXPECT_FALSE(far_slower(std::vector{12.0}, 10)) << "one turn may have been disturbed";
  EXPECT_TRUE(far_slower(std::vector{14.0}, 10));
  EXPECT_TRUE(far_slower(std::vector{12.0, 12.0}, 10));
  EXPECT_FALSE(far_slower(std::vector{12.0, 10.5}, 10));
}

TEST(Turns, NobodyAlwaysHasTheSameOneBefore) {
  EXPECT_EQ(order_in_turn(0, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(order_in_turn(1, 3), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(order_in_turn(2, 3), order_in_turn(0, 3));
}

TEST(Turns, TogetherTheyHaveTheSamplesThatWereAskedFor) {
  const RunOptions wanted{.warm_up = 5, .repeat = 21, .duration = 10, .at_least = 5};
  Plan schedule;
  schedule.schedule.emplace();
  const RunOptions options = one_turn_of(wanted, schedule);
  EXPECT_EQ(options.repeat, 5);
  Plan pipeline;
  pipeline.stages = {{.devices = {DeviceId{0}}, .ops = {}},
                     {.devices = {DeviceId{1}, DeviceId{2}, DeviceId{3}}, .ops = {}}};
  EXPECT_EQ(one_turn_of(wanted, pipeline).repeat, 3 * kFewestOfPipeline) << "for each replica";
  EXPECT_EQ(options.duration, 2);
  EXPECT_EQ(options.at_least, 1);
}

}  // namespace
}  // namespace placewright
