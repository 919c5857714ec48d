#include "evaluate/pipeline_evaluator.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/published.h"
#include "support/random_problem.h"
#include "support/records.h"

namespace placewright {
namespace {

using testing::device_record;
using testing::model_record;
using testing::op_record;
using testing::published_problem;
using testing::random_draft;
using testing::RandomProblemOptions;
using testing::RandomSource;
using testing::tensor_record;

struct Variant {
  std::uint64_t seed;
  InterconnectKind interconnect;
  TransferMode transfers;
  TrainingMode training;
  std::size_t devices;
};

std::vector<Variant> variants() {
  std::vector<Variant> result;
  std::uint64_t seed = 0;
  for (const auto interconnect : {InterconnectKind::host, InterconnectKind::links}) {
    for (const auto transfers :
         {TransferMode::sequential, TransferMode::overlapped, TransferMode::duplex}) {
      for (const auto training : {TrainingMode::interleaved, TrainingMode::phased}) {
        // Up to 8 devices tensors have a count for each device, above they are searched.
        for (const std::size_t devices : {2U, 4U, 12U}) {
          result.push_back({++seed, interconnect, transfers, training, devices});
        }
      }
    }
  }
  return result;
}

ProblemDraft draft_of(const Variant& variant) {
  RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.interconnect = variant.interconnect;
  options.ops = 30;
  options.devices = variant.devices;
  options.edge_probability = 0.25;
  options.training = variant.seed % 4 != 0;
  options.colocation = true;
  options.overheads = variant.seed % 3 != 0;
  options.unsupported = variant.seed % 2 == 0;
  options.missing_links = variant.seed % 5 == 0;
  ProblemDraft draft = random_draft(options, variant.seed);
  draft.rules.transfers = variant.transfers;
  draft.rules.training = variant.training;
  return draft;
}

void expect_equal(double actual, double expected) {
  if (expected == kInfinity) {
    ASSERT_EQ(actual, kInfinity);
  } else {
    ASSERT_NEAR(actual, expected, 1e-9 * (1 + expected));
  }
}

Placement moved(Placement placement, std::span<const OpId> ops, DeviceId to) {
  for (const OpId op : ops) placement[op] = to;
  return placement;
}

std::vector<OpId> random_ops(const Problem& problem, RandomSource& random) {
  std::vector<OpId> ops;
  for (std::size_t i = random.between(1, 5); i > 0; --i) {
    ops.push_back(OpId{random.below(problem.op_count())});
  }
  return ops;
}

// Thousands of moves of ops, groups and sets, tried and made, against the whole placement.
void walk(const Problem& problem, std::uint64_t seed, int steps) {
  RandomSource random(seed);
  Placement start(problem.op_count());
  for (DeviceId& device : start) device = DeviceId{random.below(problem.device_count())};
  PipelineEvaluator evaluator(problem, start);
  expect_equal(evaluator.value(), pipeline_value(problem, start));
  for (int step = 0; step < steps; ++step) {
    const Placement before = evaluator.placement();
    const DeviceId to{random.below(problem.device_count())};
    const OpId op{random.below(problem.op_count())};
    const GroupId group{random.below(problem.group_count())};
    const std::vector<OpId> ops = random_ops(problem, random);
    const std::vector<OpId> one = {op};
    expect_equal(evaluator.value_if_moved(op, to), pipeline_value(problem, moved(before, one, to)));
    expect_equal(evaluator.value_if_moved(group, to),
                 pipeline_value(problem, moved(before, problem.group_ops(group), to)));
    expect_equal(evaluator.value_if_moved(ops, to),
                 pipeline_value(problem, moved(before, ops, to)));
    ASSERT_EQ(evaluator.placement(), before) << "trying is not moving";
    if (random.chance(0.3)) {
      evaluator.move(op, to);
    } else {
      evaluator.move(group, to);
    }
    expect_equal(evaluator.value(), pipeline_value(problem, evaluator.placement()));
    const double busiest = evaluator.work(evaluator.busiest()).load(problem.rules());
    for (const DeviceId device : problem.devices()) {
      if (problem.rules().training == TrainingMode::phased) break;
      ASSERT_LE(evaluator.load(device), busiest);
    }
  }
}

TEST(PipelineEvaluator, AgreesWithTheWholePlacementInEveryVariant) {
  for (const Variant& variant : variants()) {
    const Problem problem(draft_of(variant));
    walk(problem, variant.seed, 1000);
    ASSERT_FALSE(HasFailure()) << "variant " << variant.seed;
  }
}

TEST(PipelineEvaluator, AgreesOnBertTraining) {
  const Problem problem = published_problem("msr/throughput/OperatorGraphs/bert_l-3_training.json",
                                            Objective::throughput);
  walk(problem, 1, 3000);
}

TEST(PipelineEvaluator, DoesNotDrift) {
  const Problem problem =
      published_problem("msr/throughput/LayerGraphs/gnmt_training.json", Objective::throughput);
  RandomSource random(7);
  PipelineEvaluator evaluator(problem, Placement(problem.op_count(), DeviceId{0}));
  for (int step = 0; step < 1'200'000; ++step) {
    evaluator.move(GroupId{random.below(problem.group_count())},
                   DeviceId{random.below(problem.device_count())});
  }
  const double value = pipeline_value(problem, evaluator.placement());
  EXPECT_NEAR(evaluator.value(), value, 1e-10 * value);
}

// A path from "cannot" back to "can" leaves nothing behind.
TEST(PipelineEvaluator, RecoversFromTheImpossible) {
  ProblemDraft draft;
  draft.objective = Objective::throughput;
  draft.cluster.kinds = {{"gpu", false}, {"npu", false}};
  draft.cluster.devices = {device_record("a", KindId{0}), device_record("b", KindId{0}),
                           device_record("c", KindId{1})};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1, kInfinity}};
  draft.models = {model_record("model")};
  draft.ops = {op_record("u", {2, 3}), op_record("v", {5, kUnsupported})};
  draft.tensors = {tensor_record(OpId{0}, {OpId{1}})};
  const Problem problem(std::move(draft));
  const DeviceId a{0};
  const DeviceId b{1};
  const DeviceId c{2};
  const OpId u{0};
  const OpId v{1};
  PipelineEvaluator evaluator(problem, Placement(2, a));
  EXPECT_EQ(evaluator.value(), 7);
  EXPECT_EQ(evaluator.value_if_moved(v, c), kInfinity) << "not supported, and no link";
  EXPECT_EQ(evaluator.value_if_moved(u, b), kInfinity) << "no link back";
  EXPECT_EQ(evaluator.value_if_moved(v, b), 6);
  evaluator.move(v, c);
  EXPECT_EQ(evaluator.impossible(), 2);
  EXPECT_EQ(evaluator.value(), kInfinity);
  evaluator.move(v, b);
  EXPECT_EQ(evaluator.impossible(), 0);
  EXPECT_EQ(evaluator.value(), 6);
}

}  // namespace
}  // namespace placewright
