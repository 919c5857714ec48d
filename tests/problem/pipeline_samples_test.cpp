#include "problem/pipeline_samples.h"

#include <map>

#include <gtest/gtest.h>

namespace placewright {
namespace {

Plan three_stages() {
  Plan plan;
  plan.value = 2;
  plan.stages = {{{DeviceId{0}}, {OpId{0}}, 2},
                 {{DeviceId{1}, DeviceId{2}}, {OpId{1}}, 1.5},
                 {{DeviceId{3}}, {OpId{2}}, 1}};
  return plan;
}

TEST(PipelineSamples, DevicesDoOneThingAtATimeAndStagesWaitForTheOnesBefore) {
  std::map<DeviceId, double> free_from;
  std::map<std::size_t, double> left;  // by sample: the stage before
  for (const PipelineSample& sample : pipeline_samples(three_stages(), 5, 13)) {
    EXPECT_GE(sample.start, free_from[sample.device]);
    EXPECT_GE(sample.start, left[sample.sample]);
    free_from[sample.device] = left[sample.sample] = sample.end;
  }
  EXPECT_EQ(left.size(), 8U);
  EXPECT_EQ(free_from.size(), 4U);
}

TEST(PipelineSamples, ReplicasTakeTurns) {
  const auto samples = pipeline_samples(three_stages(), 0, 2);
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_EQ(samples[2].device, DeviceId{1});
  EXPECT_EQ(samples[3].device, DeviceId{2});
  EXPECT_EQ(samples[2].start, 2);
  EXPECT_EQ(samples[2].end, 5);
  EXPECT_EQ(samples[5].start, 8);
}

// Where devices share resources, each stage keeps to its place in the period.
TEST(PipelineSamples, StagesKeepToTheirOffsets) {
  Plan plan;
  plan.value = 4;
  plan.stages = {{{DeviceId{0}}, {OpId{0}}, 3, 0.5},
                 {{DeviceId{1}}, {OpId{1}}, 1, 3.5},
                 {{DeviceId{0}}, {OpId{2}}, 0.5, 0}};
  const auto samples = pipeline_samples(plan, 0, 2);
  ASSERT_EQ(samples.size(), 6U);
  EXPECT_EQ(samples[0].start, 0.5);
  EXPECT_EQ(samples[1].start, 4.5);
  EXPECT_EQ(samples[2].start, 3.5);
  EXPECT_EQ(samples[4].start, 8) << "4.5 is after the period's start, so it waits for the next";
}

}  // namespace
}  // namespace placewright
