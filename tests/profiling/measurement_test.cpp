#include "profiling/measurement.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/cut_cost.h"
#include "profiling/hand_over.h"
#include "profiling/op_times.h"

namespace placewright {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TimedRun run_of(double milliseconds, bool disturbed = false) {
  return {milliseconds, milliseconds / 2, disturbed};
}

TEST(Measurement, DisturbedRunsCountForNothing) {
  const Measured summary =
      summary_of({run_of(10), run_of(90, true), run_of(11), run_of(12), run_of(99, true)});
  EXPECT_EQ(summary.median, 11);
  EXPECT_EQ(summary.kept, 3U);
  EXPECT_EQ(summary.rejected, 2U);
  EXPECT_TRUE(doubt_of(summary).empty()) << doubt_of(summary);
}

TEST(Measurement, TooManyDisturbedRunsOrTooMuchSpreadAreNotValid) {
  const Measured disturbed = summary_of({run_of(10), run_of(10), run_of(10), run_of(10, true),
                                         run_of(10, true), run_of(10, true), run_of(10, true)});
  EXPECT_FALSE(doubt_of(disturbed).empty());
  const Measured none = summary_of({run_of(10, true), run_of(12, true)});
  EXPECT_FALSE(doubt_of(none).empty());
  EXPECT_EQ(none.median, 5.5) << "what is left of each stands in";
  EXPECT_FALSE(doubt_of(summary_of({})).empty());
  const Measured wide = summary_of({run_of(10), run_of(14), run_of(20), run_of(26), run_of(30)});
  EXPECT_FALSE(doubt_of(wide).empty());
}

// Counters as the backend gives them: means since it was compiled, cut to whole microseconds.
CounterReadings readings_of(const std::vector<double>& warm_up, const std::vector<double>& times) {
  double total = 0;
  std::size_t count = 0;
  const auto mean = [&] { return std::floor(total * 1000 / static_cast<double>(count)) / 1000; };
  CounterReadings readings;
  for (const double time : warm_up) {
    total += time;
    ++count;
  }
  readings.runs_before = count;
  readings.means_before = {mean()};
  for (const double time : times) {
    total += time;
    ++count;
    readings.means.push_back({mean()});
  }
  return readings;
}

TEST(Measurement, CountersAreFreedOfWarmUpAndDisturbedRuns) {
  std::vector<double> times;
  std::vector<TimedRun> runs;
  for (int i = 0; i < 20; ++i) {
    const bool disturbed = i == 7 || i == 8;
    times.push_back(disturbed ? 50 : 2.5);
    runs.push_back(run_of(times.back(), disturbed));
  }
  const CounterReadings readings = readings_of({90, 3}, times);
  EXPECT_THAT(undisturbed_means(readings, runs), ElementsAre(DoubleNear(2.5, 0.005)));
  for (TimedRun& run : runs) run.disturbed = true;
  EXPECT_THAT(undisturbed_means(readings, runs), ElementsAre(DoubleNear(7.25, 0.005)));
}

TEST(Measurement, HandOversAreFittedAsLatencyAndBandwidth) {
  std::vector<HandOverPoint> points;
  for (double bytes = 4096; bytes <= 4194304; bytes *= 4) {
    points.push_back({bytes, 0.002 + bytes / 5e6});
  }
  points[2].milliseconds *= 3;  // one that somebody disturbed
  const HandOver fit = fitted(points);
  EXPECT_NEAR(fit.latency, 0.002, 2e-4);
  EXPECT_NEAR(fit.bandwidth, 5e6, 5e4);
}

TEST(Measurement, AFitIsNeverNegative) {
  const HandOver falling = fitted({{4096, 5}, {65536, 4}, {1048576, 1}});
  EXPECT_GE(falling.latency, 0);
  EXPECT_TRUE(std::isinf(falling.bandwidth));
  const HandOver early = fitted({{4096, 0}, {65536, 0}, {1048576, 1}, {4194304, 4.5}});
  EXPECT_GE(early.latency, 0);
  EXPECT_GT(early.bandwidth, 0);
}

TEST(Measurement, SegmentsHaveAboutEqualTime) {
  const std::vector<OpGroup> ordered{{0}, {1, 3}, {2}, {4}, {5}};
  EXPECT_THAT(equal_segments(ordered, {1, 0, 1, 1, 1, 0}, 2),
              ElementsAre(ElementsAre(0, 1, 3), ElementsAre(2, 4, 5)));
  EXPECT_EQ(equal_segments(ordered, {0, 0, 0, 0, 0, 0}, 4).size(), 1U);
  EXPECT_LE(equal_segments(ordered, {9, 0, 0, 0, 0, 0}, 8).size(), 5U);
}

}  // namespace
}  // namespace placewright
