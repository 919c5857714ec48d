#include "running/samples_that_fit.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

// Milliseconds of a machine whose first sample ever takes 20, and every other one 0.2.
class ColdMachine {
 public:
  double run(std::size_t samples) {
    const double taken = (cold_ ? 20 : 0.2) + 0.2 * static_cast<double>(samples - 1);
    cold_ = false;
    return taken;
  }

 private:
  bool cold_ = true;
};

bool never() {
  return false;
}

TEST(SamplesThatFit, AreNotToldByTheFirstFew) {
  ColdMachine machine;
  const auto run = [&](std::size_t samples) { return machine.run(samples); };
  EXPECT_NEAR(static_cast<double>(samples_that_fit(8, 5, run, never)), 40000, 1);
}

TEST(SamplesThatFit, AreTriedNoMoreOftenThanNeeded) {
  int trials = 0;
  const auto run = [&](std::size_t samples) {
    ++trials;
    return 100.0 * static_cast<double>(samples);
  };
  EXPECT_EQ(samples_that_fit(10, 5, run, never), 100U);
  EXPECT_EQ(trials, 1);
}

TEST(SamplesThatFit, EndWhenTheRunIsStopped) {
  int trials = 0;
  const auto run = [&](std::size_t) {
    ++trials;
    return 1.0;
  };
  EXPECT_GT(samples_that_fit(1000, 5, run, [&] { return trials == 2; }), 0U);
  EXPECT_EQ(trials, 2);
}

// A clock that does not move must not ask for samples without end.
TEST(SamplesThatFit, AreFinitelyManyThatTakeNoTime) {
  EXPECT_EQ(samples_that_fit(
                1, 5, [](std::size_t) { return 0.0; }, never),
            1000000U);
}

}  // namespace
}  // namespace placewright
