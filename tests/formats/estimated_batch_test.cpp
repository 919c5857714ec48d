#include "formats/estimated_batch.h"

#include <gtest/gtest.h>

namespace placewright {
namespace {

// 1 Tflop/s of which products reach half, 1 GB/s of which 70 % count, a launch of 1 ms.
ClusterFile one_kind() {
  ClusterFile file;
  file.cluster.kinds = {{.name = "mine"}, {.name = "nobody knows"}};
  file.rates["mine"] = {.flops = 1e12, .bandwidth = 1e9, .launch = 1e-3};
  return file;
}

double growth(const Op& op, double samples, KindId kind = KindId{0}) {
  const ClusterFile file = one_kind();
  ProblemDraft draft;
  draft.unit = TimeUnit::milliseconds;
  draft.cluster = file.cluster;
  draft.ops = {op};
  return EstimatedBatch(draft, file).growth(OpId{0}, kind, samples);
}

TEST(EstimatedBatch, ALaunchIsPaidOnce) {
  // 1 ms of launch and 2 ms of computing.
  const Op op{.name = "op", .type = "MatMul", .flops = 1e9, .time = {3, 3}};
  EXPECT_DOUBLE_EQ(growth(op, 1), 1);
  EXPECT_DOUBLE_EQ(growth(op, 8), (1 + 8 * 2.0) / 3);
}

TEST(EstimatedBatch, WeightsAreReadOnceUntilComputingTakesLonger) {
  // 10 ms of weights, 2 ms of computing, 1 ms of tensors.
  const Op op{.name = "op", .type = "MatMul", .memory = 7e6, .flops = 1e9, .time = {12, 12}};
  EXPECT_NEAR(growth(op, 4), (1 + 10 + 4) / 12.0, 1e-9);
  EXPECT_NEAR(growth(op, 64), (1 + 64 * 2) / 12.0, 1e-9);
}

TEST(EstimatedBatch, OtherOpsGrowWithTheirTensors) {
  const Op op{.name = "op", .type = "Add", .flops = 1, .time = {5, 5}};
  EXPECT_NEAR(growth(op, 10), (1 + 10 * 4) / 5.0, 1e-9);
}

TEST(EstimatedBatch, TheTableOfAGatherIsNoWeightThatItReads) {
  const Op op{.name = "op", .type = "Gather", .memory = 7e9, .time = {5, 5}};
  EXPECT_NEAR(growth(op, 10), (1 + 10 * 4) / 5.0, 1e-9);
}

TEST(EstimatedBatch, WithoutPeaksItIsInProportion) {
  const Op op{.name = "op", .time = {5, 5}};
  EXPECT_DOUBLE_EQ(growth(op, 10, KindId{1}), 10);
}

TEST(EstimatedBatch, WhatTakesNoTimeStaysSo) {
  const Op op{.name = "op", .type = "Reshape", .time = {0, 0}};
  EXPECT_DOUBLE_EQ(growth(op, 10) * 0, 0);
}

}  // namespace
}  // namespace placewright
