#include "running/turns.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
  EXPECT_FALSE(far_slower(std::vector{25.0}, 10)) << "one turn may have been disturbed";
  EXPECT_TRUE(far_slower(std::vector{14.0, 14.0}, 10));
  EXPECT_FALSE(far_slower(std::vector{12.0, 12.0}, 10));
  EXPECT_TRUE(far_slower(std::vector{12.0, 12.0, 12.0}, 10));
  EXPECT_FALSE(far_slower(std::vector{12.0, 12.0, 10.5}, 10));
}

TEST(Turns, NobodyAlwaysHasTheSameOneBefore) {
  EXPECT_EQ(order_in_turn(0, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(order_in_turn(1, 3), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(order_in_turn(2, 3), order_in_turn(0, 3));
}

TEST(Turns, TwoAreToldApartWhereOneIsFasterInAlmostAllTurns) {
  const auto apart = [](const std::vector<double>& times) {
    const std::vector<double> tens(times.size(), 10);
    EXPECT_EQ(told_apart(times, tens), told_apart(tens, times));
    return told_apart(times, tens);
  };
  EXPECT_TRUE(apart({10.1, 10.1, 10.2, 10.1, 10.3}));
  EXPECT_FALSE(apart({20, 20, 9.9, 20, 20})) << "how much does not count";
  EXPECT_FALSE(apart({20, 20, 9.9, 20, 20, 20, 20}));
  EXPECT_TRUE(apart({20, 20, 9.9, 20, 20, 20, 20, 20})) << "three turns more, one exception";
  EXPECT_FALSE(apart({20, 20, 9.9, 9.9, 20, 20, 20, 20}));
  EXPECT_FALSE(apart(std::vector<double>(kMostTurns, 10.0))) << "neither is faster";
}

// Contenders whose times are written down; the last time stays.
class Scripted {
 public:
  explicit Scripted(std::vector<std::vector<double>> times) : times_(std::move(times)) {
    for (std::size_t i = 0; i < times_.size(); ++i) {
      contenders_.push_back({[this, i](int turn) { return take_turn(i, turn); },
                             [this, i] { released_.push_back(i); }});
    }
  }

  bool compare(std::optional<std::size_t> reference = {}, double seconds = kLongestDecision) {
    return compare_in_turns(contenders_, reference, seconds);
  }
  void interrupt_after(std::size_t turns) { most_ = turns; }

  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
  [[nodiscard]] const std::vector<std::size_t>& released() const { return released_; }
  // By contender.
  [[nodiscard]] std::vector<int> turns() const {
    std::vector<int> counts(times_.size());
    for (const std::size_t i : order_) ++counts[i];
    return counts;
  }

 private:
  std::optional<double> take_turn(std::size_t i, int turn) {
    if (order_.size() == most_) return std::nullopt;
    order_.push_back(i);
    return times_[i][std::min(static_cast<std::size_t>(turn), times_[i].size() - 1)];
  }

  std::vector<std::vector<double>> times_;
  std::vector<Contender> contenders_;
  std::vector<std::size_t> order_;
  std::vector<std::size_t> released_;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
};

const std::vector<double> kTen = {10};
const std::vector<double> kAboutTen = {9.8, 10.2, 9.8, 10.2, 9.8, 10.2, 9.8, 10.2,
                                       9.8, 10.2, 9.8, 10.2, 9.8, 10.2, 9.8};

TEST(Turns, WhoIsToldApartInTheFirstOnesHasNoOthers) {
  Scripted two({{10.2}, kTen});
  EXPECT_TRUE(two.compare());
  EXPECT_THAT(two.order(), ElementsAre(0, 1, 1, 0, 0, 1, 1, 0, 0, 1));
  EXPECT_THAT(two.released(), IsEmpty());
}

TEST(Turns, WhoIsFarBehindAgainAndAgainIsReleased) {
  Scripted four({{9.9, 10.1, 10}, {14}, {11.5}, {25, 10.5}});
  EXPECT_TRUE(four.compare());
  EXPECT_THAT(four.turns(), ElementsAre(kTurns, 2, 3, kTurns));
  EXPECT_THAT(four.released(), ElementsAre(1, 2));
}

TEST(Turns, ALuckyTurnOfOneReleasesNobody) {
  Scripted two({{8, 10, 10.1, 10, 10}, kTen});
  EXPECT_TRUE(two.compare());
  EXPECT_THAT(two.released(), IsEmpty());
}

TEST(Turns, WhoIsNotToldApartGoesOnAndWhoIsClearlyBehindDoesNot) {
  Scripted four({{10.6}, kTen, kAboutTen, {11.1, 10.7}});
  EXPECT_TRUE(four.compare());
  EXPECT_THAT(four.turns(), ElementsAre(kTurns, kMostTurns, kMostTurns, kTurns));
  EXPECT_THAT(four.released(), ElementsAre(0, 3));
  Scripted close({{10.2}, kTen, kAboutTen});
  EXPECT_TRUE(close.compare());
  EXPECT_THAT(close.turns(), ElementsAre(kMostTurns, kMostTurns, kMostTurns))
      << "a median over other turns would not compare";
}

TEST(Turns, TheyEndWhereAllAreToldApart) {
  Scripted two({kTen, {9.9, 10.2}});
  EXPECT_TRUE(two.compare());
  EXPECT_THAT(two.turns(), ElementsAre(8, 8));
  EXPECT_THAT(two.released(), IsEmpty());
}

TEST(Turns, TheReferenceHasAllOfThemAndOnlyItCounts) {
  Scripted slow({{20}, kTen, kAboutTen});
  EXPECT_TRUE(slow.compare(0));
  EXPECT_THAT(slow.turns(), ElementsAre(kTurns, kTurns, kTurns))
      << "who of the others is faster is not asked";
  EXPECT_THAT(slow.released(), IsEmpty());
  Scripted equal({kTen, kAboutTen, {10.6}});
  EXPECT_TRUE(equal.compare(0));
  EXPECT_THAT(equal.turns(), ElementsAre(kMostTurns, kMostTurns, kTurns));
}

TEST(Turns, NoFurtherOneBeginsWhenTheTimeIsOver) {
  Scripted two({kTen, kAboutTen});
  EXPECT_TRUE(two.compare({}, 0));
  EXPECT_THAT(two.turns(), ElementsAre(kTurns, kTurns));
}

TEST(Turns, AnInterruptionEndsThem) {
  for (const std::size_t turns : {0U, 3U, 2U * kTurns + 1U}) {
    Scripted two({kTen, kAboutTen});
    two.interrupt_after(turns);
    EXPECT_FALSE(two.compare());
    EXPECT_EQ(two.order().size(), turns);
  }
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
