#include "formats/run_file.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

constexpr Measured kNotMeasured{};

// Five runs around this median, all kept.
Measured steady(double median) {
  return {.median = median, .low = 0.95 * median, .high = 1.05 * median, .kept = 5};
}

Measured unsteady(double median) {
  return {.median = median, .low = 0.5 * median, .high = 1.5 * median, .kept = 5};
}

RunFile run_beside(const std::vector<Measured>& rivals) {
  RunFile run;
  for (const Measured& rival : rivals) {
    run.baselines.push_back({.name = "rival", .latency = rival, .per_sample = rival});
  }
  return run;
}

TEST(BestBaseline, IsTheFastestAlsoIfItIsNotValid) {
  const RunFile run = run_beside({steady(12), unsteady(10), steady(11), kNotMeasured});
  ASSERT_FALSE(run.baselines[1].latency.valid());
  EXPECT_EQ(run.best_baseline(), &run.baselines[1]);
}

TEST(BestBaseline, ComparesWhatThePlanIsFor) {
  RunFile run = run_beside({steady(10), steady(11)});
  run.baselines[0].per_sample = steady(6);
  run.baselines[1].per_sample = steady(5);
  EXPECT_EQ(run.best_baseline(), &run.baselines[0]);
  run.objective = Objective::throughput;
  EXPECT_EQ(run.best_baseline(), &run.baselines[1]);
}

TEST(BestBaseline, IsNoneIfNothingWasMeasured) {
  EXPECT_EQ(run_beside({}).best_baseline(), nullptr);
  EXPECT_EQ(run_beside({kNotMeasured}).best_baseline(), nullptr);
}

}  // namespace
}  // namespace placewright
