#include "running/run_log.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace placewright {
namespace {

// One op on one device, and a second device that nobody uses.
Problem problem_for(Objective objective) {
  ProblemDraft draft;
  draft.objective = objective;
  draft.unit = TimeUnit::milliseconds;
  draft.cluster.kinds = {{.name = "kind"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}};
  draft.models = {{.name = "model", .deadline = {}}};
  draft.ops = {{.name = "op", .time = {1}}};
  return Problem(std::move(draft));
}

const std::vector<Segment> kOneSegment{
    {.model = ModelId{0}, .devices = {DeviceId{0}}, .ops = {OpId{0}}, .inputs = {}, .outputs = {}}};

// Sample i takes 1 ms and a little that rises to 0.1 ms and begins again.
double length_of(std::size_t sample) {
  return 1 + static_cast<double>(sample % 1000) / 10000;
}

TEST(RunLog, RemembersAnEvenSubsetInBoundedMemory) {
  constexpr std::size_t kSamples = 2'000'000;
  const Problem problem = problem_for(Objective::latency);
  std::vector<WorkerLog> logs(1, WorkerLog(0, 1, 1));
  for (std::size_t i = 0; i < kSamples; ++i) {
    const double begin = 2.0 * static_cast<double>(i);
    logs[0].add({0, DeviceId{0}, i, begin, begin + length_of(i)});
    logs[0].end_sample({i, begin, 0});
  }
  EXPECT_LE(logs[0].events().size(), kMostEvents);
  EXPECT_LE(logs[0].events().capacity(), 2 * kMostEvents);
  EXPECT_GE(logs[0].events().size(), kMostEvents / 4);
  EXPECT_EQ(complete_samples(logs), kSamples);
  const RunResult result = summarise_schedule(problem, kOneSegment, 0, logs, 0);
  // The same statistics as of all samples: the lengths are spread evenly over [1, 1.1).
  EXPECT_NEAR(result.value.median, 1.05, 1e-3);
  EXPECT_NEAR(result.value.low, 1.01, 1e-3);
  EXPECT_NEAR(result.value.high, 1.09, 1e-3);
  EXPECT_NEAR(result.busy[DeviceId{0}], 1.05, 1e-3);
  EXPECT_EQ(result.events.size(), 1U);
  EXPECT_NEAR(result.events.front().end, 1.05, 1e-3);
}

TEST(RunLog, SmallRunsAreRememberedWhole) {
  const Problem problem = problem_for(Objective::latency);
  std::vector<WorkerLog> logs(1, WorkerLog(0, 1, 1));
  for (std::size_t i = 0; i < 50; ++i) {
    const auto begin = static_cast<double>(10 * i);
    logs[0].add({0, DeviceId{0}, i, begin, begin + 2});
    logs[0].end_sample({i, begin, i % 10 == 0 ? 1.0 : 0.0});
  }
  const RunResult result = summarise_schedule(problem, kOneSegment, 0, logs, 10);
  EXPECT_EQ(result.value.kept, 36U);
  EXPECT_EQ(result.value.rejected, 4U) << "those that lost half of their time";
  EXPECT_EQ(result.segment_times.front().kept, 36U);
  EXPECT_EQ(result.segment_times.front().rejected, 4U);
  EXPECT_EQ(result.value.median, 2);
}

TEST(RunLog, SamplesOfReplicasAreCountedAndMeasuredInBlocks) {
  WorkerLog log(0, 1, 2);
  for (std::size_t i = 0; i < 60; ++i) log.end_step(i, static_cast<double>(i + 1), 0);
  log.completed(60);
  const RunResult result =
      summarise_pipeline(problem_for(Objective::throughput), kOneSegment, 0, {log}, 0);
  EXPECT_EQ(result.samples, 60U);
  EXPECT_EQ(result.value.kept, 30U);
}

TEST(RunLog, WhatWasDisturbedIsShownThoughNotValid) {
  for (const Objective objective : {Objective::latency, Objective::throughput}) {
    const Problem problem = problem_for(objective);
    const bool pipeline = objective == Objective::throughput;
    std::vector<WorkerLog> logs(1, WorkerLog(0, 1, 1));
    for (std::size_t i = 0; i < 50; ++i) {
      const auto begin = static_cast<double>(2 * i);
      logs[0].add({0, DeviceId{0}, i, begin, begin + 2});
      if (pipeline) {
        logs[0].end_step(i, begin + 2, 1);
      } else {
        logs[0].end_sample({i, begin, 1});
      }
    }
    logs[0].completed(50);
    const RunResult result = pipeline ? summarise_pipeline(problem, kOneSegment, 0, logs, 0)
                                      : summarise_schedule(problem, kOneSegment, 0, logs, 0);
    EXPECT_FALSE(result.value.valid());
    EXPECT_EQ(result.value.kept, 0U);
    EXPECT_EQ(result.samples, 50U);
    EXPECT_NEAR(result.value.median, 2, 1e-9);
    EXPECT_NEAR(result.segment_times[0].median, 2, 1e-9);
    EXPECT_NEAR(result.busy[DeviceId{0}], 2, 1e-9);
  }
}

TEST(RunLog, PipelinesKeepTheTimeOfEverySampleInBlocks) {
  constexpr std::size_t kSamples = 1'000'003;
  const Problem problem = problem_for(Objective::throughput);
  // Two replicas take samples in turn; the second one is disturbed in the second half of the run.
  std::vector<WorkerLog> logs(2, WorkerLog(3, 8, 2));
  for (std::size_t i = 0; i < kSamples; ++i) {
    WorkerLog& log = logs[i % 2];
    const auto end = static_cast<double>(i + 1);
    log.add({0, DeviceId{0}, i, end - 0.5, end});
    log.end_step(i, end, i % 2 == 1 && i > kSamples / 2 ? 1.0 : 0.0);
    log.completed(i + 1);
  }
  const RunResult result = summarise_pipeline(problem, kOneSegment, 0, logs, 3);
  EXPECT_GE(result.value.kept + result.value.rejected, kMostBlocks / 2 - 1);
  EXPECT_LE(result.value.kept + result.value.rejected, kMostBlocks);
  EXPECT_EQ(result.value.median, 1);
  EXPECT_NEAR(static_cast<double>(result.value.rejected), static_cast<double>(result.value.kept),
              2);
  EXPECT_NEAR(result.segment_times.front().median, 0.5, 1e-9);
  EXPECT_GT(result.segment_times.front().rejected, 1000U);
  std::set<std::size_t> shown;
  for (const StepEvent& event : result.events) shown.insert(event.sample);
  EXPECT_EQ(shown.size(), 8U) << "a whole stretch";
  EXPECT_EQ(*shown.rbegin() - *shown.begin(), 7U);
}

// The first replica is ahead of the second by many samples, and both have each sample for 2 ms.
TEST(RunLog, ReplicasNeedNotEndInTheOrderOfTheSamples) {
  const Problem problem = problem_for(Objective::throughput);
  std::vector<WorkerLog> logs(2, WorkerLog(4, 8, 2));
  for (std::size_t i = 0; i < 64; ++i) {
    const double end = 2.0 * static_cast<double>(i / 2 + 1) + (i % 2 == 1 ? 30 : 0);
    logs[i % 2].add({0, DeviceId{0}, i, end - 2, end});
    logs[i % 2].end_step(i, end, 0);
    logs[i % 2].completed(64);
  }
  const RunResult result = summarise_pipeline(problem, kOneSegment, 0, logs, 4);
  EXPECT_EQ(result.value.rejected, 0U);
  EXPECT_EQ(result.value.kept, 30U);
  EXPECT_EQ(result.value.low, 1);
  EXPECT_EQ(result.value.high, 1);
  EXPECT_EQ(result.busy[DeviceId{0}], 2);
}

TEST(RunLog, WhatIsRememberedIsSpreadOverWhateverRepeats) {
  for (const std::size_t stretch : {1U, 8U}) {
    Remembered remembered(stretch);
    for (int i = 0; i < 6; ++i) remembered.halve();
    for (const std::size_t period : {2U, 3U, 8U}) {
      std::vector<int> counts(period, 0);
      for (std::size_t group = 0; group < 64 * 3000; ++group) {
        if (remembered.has(group * stretch)) ++counts[group % period];
      }
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_GT(*least, 0.9 * *most) << stretch << " " << period;
    }
  }
}

}  // namespace
}  // namespace placewright
