#include "running/arrival_totals.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

ArrivalState ran(DeviceId device, double start, double end) {
  ArrivalState state;
  state.stage = ArrivalStage::complete;
  state.device = device;
  state.start = start;
  state.end = end;
  return state;
}

ArrivalRound round_of(std::vector<ArrivalState> states, bool disturbed = false) {
  ArrivalRound round;
  round.states = std::move(states);
  round.disturbed = disturbed;
  round.watched = true;
  return round;
}

// Two arrivals on one device, the first one first or last.
ArrivalRound in_order(double factor = 1) {
  return round_of({ran(DeviceId{0}, 0, 2 * factor), ran(DeviceId{0}, 2 * factor, 3 * factor)});
}
ArrivalRound in_reverse() {
  return round_of({ran(DeviceId{0}, 2, 4), ran(DeviceId{0}, 1, 2)});
}

const std::vector<WeightedArrival> kArrivals{{0, 1}, {1, 3}};

TEST(ArrivalTotals, AreWeightedAndTypicalIsTheMedianRun) {
  ArrivalRuns runs;
  runs.rounds = {{in_order(2), in_order(), in_order(1.5)}};
  const auto totals = totals_of(runs, kArrivals, std::vector<char>{1});
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].totals, (std::vector<double>{4 + 3 * 5, 2 + 3 * 2, 3 + 3 * 3.5}));
  EXPECT_EQ(totals[0].typical, 2U);
  EXPECT_EQ(totals[0].measured.median, 13.5);
  EXPECT_EQ(totals[0].measured.kept, 3);
  EXPECT_FALSE(totals[0].alike);
}

TEST(ArrivalTotals, RulesThatDecideAlikeCountTogether) {
  ArrivalRuns runs;
  runs.rounds = {{in_order()}, {in_reverse()}, {in_order(3)}, {in_order(5)}};
  const auto totals = totals_of(runs, kArrivals, std::vector<char>{1, 1, 1, 0});
  EXPECT_EQ(totals[0].alike, 2U);
  EXPECT_EQ(totals[0].measured.kept, 2);
  EXPECT_FALSE(totals[1].alike) << "the other way round";
  EXPECT_FALSE(totals[3].alike) << "not comparable";
  EXPECT_EQ(totals[3].measured.kept, 1);
}

TEST(ArrivalTotals, DisturbedRunsAreRejectedAndCancelledArrivalsDoNotCount) {
  ArrivalRuns runs;
  ArrivalRound cancelled = in_order();
  cancelled.states[0].stage = ArrivalStage::cancelled;
  runs.rounds = {{cancelled, round_of(in_order().states, true)}};
  const auto totals = totals_of(runs, kArrivals, std::vector<char>{1});
  EXPECT_EQ(totals[0].totals.front(), 6);
  EXPECT_EQ(totals[0].measured.rejected, 1);
}

}  // namespace
}  // namespace placewright
