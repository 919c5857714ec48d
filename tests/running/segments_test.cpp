#include "running/segments.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "evaluate/placement_plan.h"
#include "evaluate/schedule.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using placewright::testing::random_draft;
using placewright::testing::random_placement;
using placewright::testing::RandomProblemOptions;
using placewright::testing::RandomSource;

// Every op once, on its own device and of one model; what a segment reads comes before it.
void expect_runnable(const Problem& problem, const Plan& plan,
                     const std::vector<Segment>& segments) {
  std::vector<std::size_t> segment_of(problem.op_count(), segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ASSERT_FALSE(segments[i].ops.empty());
    for (const OpId op : segments[i].ops) {
      EXPECT_EQ(segment_of[op.index()], segments.size()) << "twice: " << problem.op(op).name;
      segment_of[op.index()] = i;
      EXPECT_EQ(plan.placement[op], segments[i].devices.front());
      EXPECT_EQ(problem.op(op).model, segments[i].model);
    }
  }
  for (const OpId op : problem.ops()) {
    ASSERT_LT(segment_of[op.index()], segments.size()) << "missing: " << problem.op(op).name;
    for (const OpId before : problem.predecessors(op)) {
      const std::size_t reader = segment_of[op.index()];
      const std::size_t producer = segment_of[before.index()];
      ASSERT_LE(producer, reader);
      if (producer == reader) continue;
      const auto& inputs = segments[reader].inputs;
      EXPECT_TRUE(std::binary_search(inputs.begin(), inputs.end(), producer));
      const auto& outputs = segments[producer].outputs;
      EXPECT_NE(std::find(outputs.begin(), outputs.end(), reader), outputs.end());
    }
  }
}

// The end when segments run in their order, each as soon as its device and its inputs are ready.
double end_of(const Problem& problem, const std::vector<Segment>& segments) {
  std::vector<double> free(problem.device_count(), 0);
  std::vector<double> ends;
  for (const Segment& segment : segments) {
    double start = free[segment.devices.front().index()];
    for (const std::size_t producer : segment.inputs) start = std::max(start, ends[producer]);
    ends.push_back(start + segment.predicted);
    free[segment.devices.front().index()] = ends.back();
  }
  return ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end());
}

class Segments : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Segments, OfASchedule) {
  RandomSource random(GetParam());
  const RandomProblemOptions options{.ops = random.between(1, 40),
                                     .devices = random.between(1, 4),
                                     .models = random.between(1, 3),
                                     .edge_probability = 0.15,
                                     .congestion = random.chance(0.5),
                                     .colocation = random.chance(0.5),
                                     .zero_times = random.chance(0.5)};
  const Problem problem(random_draft(options, GetParam()));
  const Placement placement = random_placement(problem, random);
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  const std::vector<Segment> segments = segments_of(problem, *plan);
  expect_runnable(problem, *plan, segments);
}

TEST_P(Segments, KeepTheEndOfAScheduleWhoseTransfersAreFree) {
  RandomSource random(GetParam());
  ProblemDraft draft = random_draft(
      {.ops = random.between(2, 30), .devices = random.between(2, 3), .edge_probability = 0.15},
      GetParam());
  for (Tensor& tensor : draft.tensors) {
    tensor.link_times.assign(draft.cluster.devices.size() * draft.cluster.devices.size(), 0);
  }
  const Problem problem(std::move(draft));
  const auto plan = plan_of_placement(problem, random_placement(problem, random));
  ASSERT_TRUE(plan);
  const std::vector<Segment> segments = segments_of(problem, *plan);
  EXPECT_LE(end_of(problem, segments), plan->value * (1 + 1e-9));
}

TEST_P(Segments, OfAPipelineAreOneForEachDeviceOfAContiguousPlan) {
  RandomSource random(GetParam());
  const Problem problem(random_draft({.objective = Objective::throughput,
                                      .ops = random.between(1, 40),
                                      .devices = random.between(1, 4),
                                      .edge_probability = 0.15},
                                     GetParam()));
  const Placement placement = random_placement(problem, random);
  const auto contiguous = plan_of_placement(problem, placement);
  Plan plan;
  if (contiguous) {
    plan = *contiguous;
    std::set<DeviceId> used(placement.begin(), placement.end());
    EXPECT_EQ(segments_of(problem, plan).size(), used.size());
  } else {
    // Not contiguous: still runnable, in more parts.
    plan.placement = placement;
  }
  expect_runnable(problem, plan, segments_of(problem, plan));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Segments, ::testing::Range<std::uint64_t>(1, 41));

TEST(SegmentsOfFusedOps, StayTogetherWhereThatClosesNoCycle) {
  // conv -> other -> add and conv -> add: fusing conv with add would put `other` before and behind.
  ProblemDraft draft;
  draft.cluster.kinds = {{.name = "kind"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}, {.name = "b", .kind = KindId{0}}};
  draft.cluster.links = {{.from = DeviceId{0}, .to = DeviceId{1}},
                         {.from = DeviceId{1}, .to = DeviceId{0}}};
  draft.models = {{.name = "model", .deadline = {}}};
  for (const char* name : {"conv", "other", "add", "relu"}) {
    draft.ops.push_back({.name = name, .time = {1}});
  }
  const auto edge = [&](std::size_t from, std::size_t to) {
    draft.tensors.push_back({.producer = OpId{from}, .consumers = {OpId{to}}});
  };
  edge(0, 1);
  edge(1, 2);
  edge(0, 2);
  edge(2, 3);
  draft.colocated = {{OpId{0}, OpId{2}}};
  const Problem problem(std::move(draft));
  Placement placement(4, DeviceId{0});
  placement[OpId{1}] = DeviceId{1};
  const auto plan = plan_of_placement(problem, placement);
  ASSERT_TRUE(plan);
  const std::vector<Segment> segments = segments_of(problem, *plan);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].ops, std::vector<OpId>{OpId{0}});
  EXPECT_EQ(segments[1].ops, std::vector<OpId>{OpId{1}});
  EXPECT_EQ(segments[2].ops, (std::vector<OpId>{OpId{2}, OpId{3}}));
}

TEST(SegmentsOfSeveralModels, WhatTakesNoTimeDoesNotWaitForTheModelThatFollows) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{.name = "kind"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}};
  draft.models = {{.name = "first", .deadline = {}}, {.name = "second", .deadline = {}}};
  draft.ops = {{.name = "conv", .time = {1}},
               {.name = "reshape", .time = {0}},
               {.name = "other", .model = ModelId{1}, .time = {2}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}}};
  const Problem problem(std::move(draft));
  // The reshape comes behind the sources of both models in the topological order.
  ASSERT_GT(problem.topological_rank(OpId{1}), problem.topological_rank(OpId{2}));
  Plan plan;
  plan.placement = Placement(3, DeviceId{0});
  Schedule& schedule = plan.schedule.emplace();
  schedule.start = schedule.end = Table<OpId, double>(3, 1);
  schedule.start[OpId{0}] = 0;
  schedule.end[OpId{2}] = 3;
  const std::vector<Segment> segments = segments_of(problem, plan);
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].ops, (std::vector<OpId>{OpId{0}, OpId{1}}));
  EXPECT_EQ(segments[1].ops, std::vector<OpId>{OpId{2}});
}

}  // namespace
}  // namespace placewright
