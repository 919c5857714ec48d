// What a planner is told and may tell: Control.

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "planners/planner.h"

namespace placewright {
namespace {

// What an observer was told, and whether always in the thread that made it.
struct Told {
  std::thread::id owner = std::this_thread::get_id();
  std::vector<double> values = {};
  bool always_in_owner = true;

  Control::Observer observer() {
    return [this](const Progress& progress) {
      values.push_back(progress.value);
      always_in_owner = always_in_owner && std::this_thread::get_id() == owner;
    };
  }
};

TEST(Control, WhatOtherThreadsReportIsDeliveredInTheOwnersThread) {
  Told told;
  Control control("test", Budget{}, nullptr, told.observer());
  control.report(5, 0);
  std::jthread([&] {
    control.report(4, 0);
    control.report(3, 0);
    EXPECT_FALSE(control.should_stop());
    control.deliver_reports();
  }).join();
  EXPECT_EQ(told.values, std::vector<double>({5}));
  EXPECT_FALSE(control.should_stop());
  EXPECT_EQ(told.values, std::vector<double>({5, 4, 3}));
  std::jthread([&] { control.report(2, 0); }).join();
  control.report(1, 0);
  EXPECT_EQ(told.values, std::vector<double>({5, 4, 3, 2, 1}));
  EXPECT_TRUE(told.always_in_owner);
}

TEST(Control, APartReportsToTheSameOwner) {
  Told told;
  Control whole("whole", Budget{}, nullptr, told.observer());
  std::jthread([&] {
    Control part = whole.part("part", 1);
    part.report(7, 0);
  }).join();
  whole.deliver_reports();
  EXPECT_EQ(told.values, std::vector<double>({7}));
  EXPECT_TRUE(told.always_in_owner);
}

TEST(Control, StopsAtTheFirstQuestionAfterTheTimeIsOver) {
  Control control("test", Budget{.seconds = 0.2});
  static_cast<void>(control.should_stop());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a long step
  EXPECT_TRUE(control.should_stop());
  EXPECT_EQ(control.stop_reason(), "time limit");
}

TEST(Control, StopsAfterItsStepsWhateverTheTime) {
  Control control("test", Budget{.seconds = kInfinity, .steps = 10});
  EXPECT_FALSE(control.should_stop(10));
  EXPECT_TRUE(control.should_stop(1));
  EXPECT_EQ(control.stop_reason(), "step limit");
}

TEST(Control, SaysWhatWorkIsBeyondTheBudget) {
  const Control control("test", Budget{.seconds = 1000, .memory = 1e6});
  EXPECT_EQ(control.cannot_afford(1, 1e5), "");
  EXPECT_EQ(control.cannot_afford(1, 2e6),
            "it would take about 2 MB of memory, and the limit is 1 MB");
  EXPECT_NE(control.cannot_afford(2000, 1e5), "");
}

// So that the same work is begun whatever the clock says.
TEST(Control, WithALimitOfStepsEstimatesAloneDecide) {
  for (const double seconds : {0.0, 1.0, 1e6}) {
    const Control control("test", Budget{.seconds = seconds, .steps = 10});
    EXPECT_EQ(control.cannot_afford(10, 0), "");
    EXPECT_EQ(control.cannot_afford(11, 0),
              "it would take about 11 s before it could be stopped, and 10 s are the most with a "
              "limit of steps");
  }
}

TEST(Control, ABudgetWithoutTimeStopsAtOnce) {
  EXPECT_TRUE(Control("test", Budget{.seconds = 0}).should_stop());
  EXPECT_TRUE(Control("test", Budget{.seconds = -1}).should_stop());
}

}  // namespace
}  // namespace placewright
