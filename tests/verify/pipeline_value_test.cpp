// Pipelines worked out by hand.

#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "problem/problem.h"
#include "samples.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

double value_of(const Sample& sample) {
  return verified_value(Problem(sample.draft), sample.plan);
}

std::vector<std::string> codes_of(Sample sample) {
  sample.plan.value = value_of(sample);
  std::vector<std::string> codes;
  for (const Violation& violation : verify(Problem(sample.draft), sample.plan)) {
    codes.emplace_back(name_of(violation.code));
  }
  return codes;
}

// acc0: p and q; acc1: r and s. p's tensor (3) is read by q, r and s; q's (2) by r; s's (9) by
// nobody. compute 4 + 5 and 6 + 1; acc0 sends 3 + 2, acc1 receives 3 + 2.
Sample two_stages() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}, {"cpu", true}};
  draft.cluster.devices = {
      {"acc0", KindId{0}}, {"acc1", KindId{0}}, {"acc2", KindId{0}}, {"cpu0", KindId{1}}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("p", {4, 9}, 8), op("q", {5, 9}, 16), op("r", {6, 9}, 8), op("s", {1, 9}, 8)};
  draft.tensors = {tensor(0, {1, 2, 3}, 1, 3), tensor(1, {2}, 1, 2), tensor(3, {}, 1, 9)};
  sample.plan.placement = placed({0, 0, 1, 1});
  return sample;
}

TEST(PipelineValue, HostTransfersOnceOutAndOnceIn) {
  EXPECT_DOUBLE_EQ(value_of(two_stages()), 9 + 5);
  EXPECT_DOUBLE_EQ(value_of(pipeline()), 8);
}

TEST(PipelineValue, HostDevicesMoveNothing) {
  Sample sample = two_stages();
  sample.plan.placement = placed({0, 0, 3, 3});  // r, s on the cpu
  EXPECT_DOUBLE_EQ(value_of(sample), 9 + 9);
  sample.draft.ops[2].time[1] = 1;
  sample.draft.ops[3].time[1] = 1;
  EXPECT_DOUBLE_EQ(value_of(sample), 9 + 5);
}

TEST(PipelineValue, OverlappedAndDuplex) {
  // q away from p and r: acc1 computes 5, receives 3, sends 2.
  Sample sample = two_stages();
  sample.plan.placement = placed({0, 1, 2, 2});
  EXPECT_DOUBLE_EQ(value_of(sample), 7 + 3 + 2);  // acc2: compute 7, in 3 + 2
  sample.draft.ops[2].time[0] = 1;
  sample.draft.rules.transfers = TransferMode::overlapped;
  sample.draft.ops[1].time[0] = 1;
  sample.draft.ops[0].time[0] = 1;
  EXPECT_DOUBLE_EQ(value_of(sample), 5);  // acc1: in 3 + out 2, and acc2: in 5
  sample.draft.tensors[1].host_time = 1;
  EXPECT_DOUBLE_EQ(value_of(sample), 4);  // acc1: 3 + 1, acc2: 3 + 1
  sample.draft.rules.transfers = TransferMode::duplex;
  sample.plan.placement = placed({0, 1, 1, 1});  // acc1: compute 3, in 3
  EXPECT_DOUBLE_EQ(value_of(sample), 3);
  sample.plan.placement = placed({0, 1, 2, 2});  // acc2: in 3 + 1
  EXPECT_DOUBLE_EQ(value_of(sample), 4);
}

TEST(PipelineValue, OverheadsCountAsCompute) {
  Sample sample = two_stages();
  sample.draft.cluster.devices[0].send_overhead = 1;
  EXPECT_DOUBLE_EQ(value_of(sample), 9 + 5 + 2);
  sample.draft.rules.transfers = TransferMode::overlapped;
  EXPECT_DOUBLE_EQ(value_of(sample), 9 + 2);
  sample.draft.cluster.devices[1].receive_overhead = 3;
  EXPECT_DOUBLE_EQ(value_of(sample), 7 + 2 * 3);
}

// acc0 sends p's tensor to b and to c: each destination counts.
TEST(PipelineValue, LinksCountEachDestination) {
  Sample sample = two_stages();
  ProblemDraft& draft = sample.draft;
  draft.cluster.interconnect = InterconnectKind::links;
  draft.cluster.kinds[1].on_host = false;
  for (const std::size_t from : {0U, 1U, 2U, 3U}) {
    for (const std::size_t to : {0U, 1U, 2U, 3U}) {
      if (from != to)
        draft.cluster.links.push_back({DeviceId{from}, DeviceId{to}, from == 0 ? 1.0 : 11.0, 1});
    }
  }
  EXPECT_DOUBLE_EQ(value_of(sample), 9 + 2 + 2);
  sample.plan.placement = placed({0, 1, 2, 2});
  // acc0: 4 + 2 + 2; acc1: 5 + 2 in + 12 out; acc2: 7 + 2 + 12.
  EXPECT_DOUBLE_EQ(value_of(sample), 21);
}

// Forward f0 -> f1, backward b1 -> b0, each pair on one device; b0 and b1 read what f0 and f1 made.
Sample training() {
  Sample sample;
  ProblemDraft& draft = sample.draft;
  draft.objective = Objective::throughput;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}};
  draft.cluster.devices = {{"acc0", KindId{0}}, {"acc1", KindId{0}}, {"acc2", KindId{0}}};
  draft.models = {{"model", 0, 1, {}}};
  draft.ops = {op("f0", {2}, 40), op("f1", {3}, 20), backward_op("b1", {7}, 0),
               backward_op("b0", {5}, 0)};
  draft.tensors = {tensor(0, {1, 3}, 1, 1), tensor(1, {2}, 1, 10), tensor(2, {3}, 1, 0.5)};
  draft.colocated = {ops({0, 3}), ops({1, 2})};
  sample.plan.placement = placed({0, 1, 1, 0});
  return sample;
}

TEST(PipelineValue, InterleavedTakesTheSumOfBothPasses) {
  // acc0: 2 + 5, out 1, in 0.5; acc1: 3 + 7, in 1, out 0.5
  EXPECT_DOUBLE_EQ(value_of(training()), 11.5);
  EXPECT_THAT(codes_of(training()), ::testing::IsEmpty());
}

TEST(PipelineValue, PhasedAddsTheWorstOfEachPass) {
  Sample sample = training();
  sample.draft.rules.training = TrainingMode::phased;
  // forward: acc0 2 + 1, acc1 3 + 1; backward: acc0 5 + 0.5, acc1 7 + 0.5
  EXPECT_DOUBLE_EQ(value_of(sample), 4 + 7.5);
  sample.draft.ops[0].time[0] = 6;
  EXPECT_DOUBLE_EQ(value_of(sample), 7 + 7.5);
}

// b1 on acc2 reads f1's tensor only in the backward pass; f1 on acc1 and b1 read f0's, fetched
// forward.
TEST(PipelineValue, ATransferInBelongsToTheProducersPassWhereItCan) {
  Sample sample = training();
  sample.draft.rules.training = TrainingMode::phased;
  sample.draft.colocated.clear();
  sample.plan.placement = placed({0, 1, 2, 0});
  // forward: acc1 3 + 1 in + 10 out = 14; backward: acc2 7 + 10 in + 0.5 out = 17.5
  EXPECT_DOUBLE_EQ(value_of(sample), 14 + 17.5);
  sample.draft.tensors[0].consumers = ops({1, 2, 3});
  // ... and f0's tensor goes into acc2 in the backward pass.
  EXPECT_DOUBLE_EQ(value_of(sample), 14 + 18.5);
  sample.plan.placement = placed({0, 2, 2, 0});
  // f1 and b1 together fetch it in the forward pass.
  EXPECT_DOUBLE_EQ(value_of(sample), 4 + 7.5);
}

TEST(PipelineValue, ReplicasShareTheLoadAndExchangeGradients) {
  Sample sample = training();
  sample.draft.rules.max_replicas = 2;
  sample.plan.stages = {{devices({0}), ops({0, 3}), 8.5}, {devices({1, 2}), ops({1, 2}), 5.75}};
  EXPECT_DOUBLE_EQ(value_of(sample), 8.5);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());

  sample.draft.rules.replica_bandwidth = 2;  // half of 20 bytes at 2: 5 more
  sample.plan.stages[1].load = 10.75;
  EXPECT_DOUBLE_EQ(value_of(sample), 10.75);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());

  sample.draft.rules.training = TrainingMode::phased;
  // forward: acc0 3, stage 2 2; backward: acc0 5.5, stage 2 7.5 / 2 + 5
  sample.plan.stages[1].load = 2 + 8.75;
  EXPECT_DOUBLE_EQ(value_of(sample), 3 + 8.75);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(PipelineValue, InferenceExchangesNoGradients) {
  Sample sample = pipeline();
  sample.draft.rules.max_replicas = 2;
  sample.draft.rules.replica_bandwidth = 0.001;
  sample.plan.stages[2].devices = devices({3, 4});
  sample.plan.stages[2].load = 4;
  EXPECT_DOUBLE_EQ(value_of(sample), 6);
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// p -> q and s -> t on two devices crosswise: each device's set is convex, but both wait.
TEST(PipelineValue, JointContiguityIsStricterThanPerDevice) {
  Sample sample = pipeline();
  sample.draft.ops.push_back(op("t", {4, 8}));
  sample.draft.tensors = {tensor(0, {1}, 5, 1), tensor(2, {3}, 5, 1)};
  sample.plan.placement = placed({0, 1, 1, 0});
  sample.plan.stages.clear();
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("not-contiguous"));
  sample.draft.rules.contiguity = Contiguity::per_device;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.draft.rules.contiguity = Contiguity::none;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(PipelineValue, ContiguityIsNotAskedOfBackwardOps) {
  Sample sample = training();
  // acc0 feeds acc1 forward, acc1 feeds acc0 backward.
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  for (Op& record : sample.draft.ops) record.backward = false;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("not-contiguous"));
}

// b is an orphan between b1 on acc1 and b0 on acc0: it stands between f0 and f1 in the forward
// graph.
TEST(PipelineValue, OrphanBackwardOpsStandInTheForwardGraph) {
  Sample sample = training();
  sample.draft.ops.push_back(backward_op("b", {1}));
  sample.draft.tensors[2].consumers = ops({4});
  sample.draft.tensors.push_back(tensor(4, {3}, 1, 0.5));
  for (const std::size_t device : {0U, 1U, 2U}) {
    sample.plan.placement = placed({0, 1, 1, 0, device});
    sample.draft.rules.contiguity = Contiguity::joint;
    EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
    sample.draft.rules.contiguity = Contiguity::per_device;
    EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  }
  // Now b0 feeds the orphan and the orphan b1: turned round f1 -> b -> f0, against f0 -> f1.
  sample.draft.tensors[2] = tensor(3, {4}, 1, 0.5);
  sample.draft.tensors[3] = tensor(4, {2}, 1, 0.5);
  sample.draft.rules.contiguity = Contiguity::joint;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("not-contiguous"));
  sample.draft.rules.contiguity = Contiguity::per_device;  // all three devices come back
  EXPECT_THAT(codes_of(sample),
              ::testing::ElementsAre("not-contiguous", "not-contiguous", "not-contiguous"));
  sample.plan.placement = placed({0, 0, 0, 0, 0});
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

TEST(PipelineValue, PeakMemoryHoldsTheSamplesInFlight) {
  Sample sample = training();
  sample.draft.rules.memory = MemoryModel::peak;
  // acc0 is first of two stages: tensors of f0 and of b1, two samples of each.
  sample.draft.cluster.devices[0].memory = 40 + 2 * 2;
  // acc1 is last: it receives f0's and makes two.
  sample.draft.cluster.devices[1].memory = 20 + 3;
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
  sample.draft.cluster.devices[0].memory -= 1;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("peak-memory-exceeded"));
  sample.draft.cluster.devices[0].memory += 1;
  sample.draft.cluster.devices[1].memory -= 1;
  EXPECT_THAT(codes_of(sample), ::testing::ElementsAre("peak-memory-exceeded"));
}

TEST(PipelineValue, TheScheduleSaysHowManyMicroBatchesAreHeld) {
  Sample sample = training();
  sample.draft.rules.memory = MemoryModel::peak;
  sample.draft.rules.schedule = PipelineSchedule::gpipe;
  sample.draft.rules.micro_batches = 5;
  const auto with_memory = [&](double first, double second) {
    sample.draft.cluster.devices[0].memory = first;
    sample.draft.cluster.devices[1].memory = second;
    return codes_of(sample);
  };
  // All of the step: five of each tensor on both devices.
  EXPECT_THAT(with_memory(40 + 5 * 2, 20 + 5 * 3), ::testing::IsEmpty());
  EXPECT_THAT(with_memory(40 + 5 * 2 - 1, 20 + 5 * 3),
              ::testing::ElementsAre("peak-memory-exceeded"));
  EXPECT_THAT(with_memory(40 + 5 * 2, 20 + 5 * 3 - 1),
              ::testing::ElementsAre("peak-memory-exceeded"));
  // A step of one micro-batch leaves nothing to hold back.
  sample.draft.rules.schedule = PipelineSchedule::one_forward_one_backward;
  sample.draft.rules.micro_batches = 1;
  EXPECT_THAT(with_memory(40 + 2, 20 + 3), ::testing::IsEmpty());
  EXPECT_THAT(with_memory(40 + 1, 20 + 3), ::testing::ElementsAre("peak-memory-exceeded"));
  // One stage on each device: the first runs three forward actions before its first backward one.
  sample.draft.rules.schedule = PipelineSchedule::interleaved;
  sample.draft.rules.micro_batches = 0;
  EXPECT_THAT(with_memory(40 + 3 * 2, 20 + 3), ::testing::IsEmpty());
  EXPECT_THAT(with_memory(40 + 3 * 2 - 1, 20 + 3), ::testing::ElementsAre("peak-memory-exceeded"));
}

// load(S) of the paper, by sets: times in S + tensors from outside read in S + tensors of S read
// outside.
double load_by_sets(const Problem& problem, const Placement& placement, DeviceId device) {
  double load = 0;
  for (const OpId op : problem.ops()) {
    if (placement[op] == device) load += problem.time(op, device);
  }
  if (problem.on_host(device)) return load;
  for (const TensorId tensor : problem.tensors()) {
    const bool made_here = placement[problem.producer(tensor)] == device;
    bool read_here = false;
    bool read_elsewhere = false;
    for (const OpId consumer : problem.consumers(tensor)) {
      (placement[consumer] == device ? read_here : read_elsewhere) = true;
    }
    if (made_here ? read_elsewhere : read_here) load += problem.host_time(tensor);
  }
  return load;
}

TEST(PipelineValue, AgreesWithThePapersFormulaOnRandomPlacements) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Problem problem(random_draft({.objective = Objective::throughput,
                                        .interconnect = InterconnectKind::host,
                                        .ops = 10,
                                        .devices = 4},
                                       seed));
    RandomSource random(seed);
    Plan plan;
    for (std::size_t i = 0; i < problem.op_count(); ++i) {
      plan.placement.push_back(DeviceId{random.below(problem.device_count())});
    }
    double worst = 0;
    for (const DeviceId device : problem.devices()) {
      worst = std::max(worst, load_by_sets(problem, plan.placement, device));
    }
    ASSERT_NEAR(verified_value(problem, plan), worst, 1e-9) << "seed " << seed;
  }
}

std::vector<std::string> codes_at(Sample sample, double period) {
  sample.plan.value = period;
  std::vector<std::string> codes;
  for (const Violation& violation : verify(Problem(sample.draft), sample.plan)) {
    codes.emplace_back(name_of(violation.code));
  }
  return codes;
}

TEST(PipelineValue, StagesThatShareCoresTakeTurns) {
  Sample sample = shared_pipeline();
  EXPECT_THAT(codes_at(sample, 3), ::testing::IsEmpty());
  EXPECT_THAT(codes_at(sample, 7), ::testing::IsEmpty());  // longer than it needs to be
  sample.plan.stages[2].offset = 3 * 5 + 2.0;              // the same moment of a later period
  EXPECT_THAT(codes_at(sample, 3), ::testing::IsEmpty());
  for (Stage& stage : sample.plan.stages) *stage.offset += 2.5;  // stage 0 wraps round
  EXPECT_THAT(codes_at(sample, 3), ::testing::IsEmpty());
  EXPECT_THAT(codes_at(sample, 2.999), ::testing::Contains("resource-exceeded"));
}

TEST(PipelineValue, WithoutAPeriodItIsTheEndOfTheLastStage) {
  Sample sample = shared_pipeline();
  sample.plan.value = kInfinity;
  sample.plan.stages[2].offset = 6;
  EXPECT_DOUBLE_EQ(value_of(sample), 7);
  sample.plan.value = 3;  // 6 is 0 modulo 3, where stage 0 runs
  EXPECT_DOUBLE_EQ(value_of(sample), 7);
  sample.plan.value = 4;  // and 2 modulo 4
  EXPECT_DOUBLE_EQ(value_of(sample), 4);
}

// Five stages of load 1 in a ring, each sharing a core with the next: any list ends at 3, but in a
// period of 2.5 two of them run at every moment.
TEST(PipelineValue, StagesThatWrapRoundCanBeatEveryList) {
  Sample sample = shared_pipeline();
  ProblemDraft& draft = sample.draft;
  draft.cluster.resources.clear();
  draft.cluster.devices.clear();
  draft.ops.clear();
  draft.tensors.clear();
  draft.cluster.spaces.clear();
  sample.plan = Plan{};
  for (std::size_t i = 0; i < 5; ++i) {
    draft.cluster.resources.push_back({fmt::format("core{}", i), 1});
    draft.cluster.devices.push_back({fmt::format("pair{}", i), KindId{0}});
    draft.cluster.devices[i].uses = {{ResourceId{i}, 1}, {ResourceId{(i + 1) % 5}, 1}};
    draft.ops.push_back(op(fmt::format("op{}", i), {1}));
    sample.plan.placement.push_back(DeviceId{i});
    sample.plan.stages.push_back({devices({i}), ops({i}), 1, static_cast<double>(i)});
  }
  EXPECT_THAT(codes_at(sample, 2.5), ::testing::IsEmpty());
  EXPECT_THAT(codes_at(sample, 2.4), ::testing::Contains("resource-exceeded"));
  for (Stage& stage : sample.plan.stages) stage.offset.reset();
  EXPECT_DOUBLE_EQ(value_of(sample), 3);
}

TEST(PipelineValue, OffsetsThatAreLeftOutAreThoseOfAList) {
  Sample sample = shared_pipeline();
  sample.plan.value = kInfinity;
  for (Stage& stage : sample.plan.stages) stage.offset.reset();
  EXPECT_DOUBLE_EQ(value_of(sample), 3);
  sample.plan.stages.clear();
  EXPECT_DOUBLE_EQ(value_of(sample), 3);
  sample.draft.ops[1].share = {0.5};
  sample.draft.ops[2].share = {0.5};  // b and c share core 2, a still has all of 0 and 1
  EXPECT_DOUBLE_EQ(value_of(sample), 2);
  sample.draft.cluster.devices[2].uses = {{ResourceId{2}, 1}};  // c runs beside a
  sample.draft.ops[1].share = sample.draft.ops[2].share = {};
  EXPECT_DOUBLE_EQ(value_of(sample), 2);
  sample.draft.ops[2].time = {1.5};  // c does not fit before b, with which it shares core 2
  EXPECT_DOUBLE_EQ(value_of(sample), 3.5);
}

// a hands its tensor over to b and c, once; b and c take it in.
TEST(PipelineValue, HandOversAreComputeAndNothingTravels) {
  Sample sample = shared_pipeline();
  sample.draft.tensors = {tensor(0, {1, 2}, 5)};
  sample.draft.tensors[0].cuts = {{KindId{0}, 0.5, 0.25}};
  sample.draft.rules.transfers = TransferMode::duplex;
  EXPECT_THAT(verified_loads(Problem(sample.draft), sample.plan),
              ::testing::ElementsAre(1.5, 1.25, 1.25));
}

// f0 and b0 on acc0, f1 and b1 on acc1, as in training(); the two share a core.
TEST(PipelineValue, PhasedPassesTakeTurnsEach) {
  Sample sample = training();
  sample.draft.rules.training = TrainingMode::phased;
  sample.draft.cluster.resources = {{"core", 1}};
  sample.draft.cluster.devices[0].uses =
      sample.draft.cluster.devices[1].uses = {{ResourceId{0}, 1}};
  // forward: 3 and 4; backward: 5.5 and 7.5
  EXPECT_DOUBLE_EQ(value_of(sample), 7 + 13);
  EXPECT_THAT(codes_at(sample, 20), ::testing::IsEmpty());
  EXPECT_THAT(codes_at(sample, 19), ::testing::ElementsAre("value-wrong"));
  sample.plan.stages = {{devices({0}), ops({0, 3}), 8.5, 0.0, 7.5},
                        {devices({1}), ops({1, 2}), 11.5, 3.0, 0.0}};
  EXPECT_THAT(codes_at(sample, 20), ::testing::IsEmpty());
  sample.plan.stages[0].backward_offset = 7;
  EXPECT_THAT(codes_at(sample, 19.5), ::testing::ElementsAre("resource-exceeded"));
  sample.draft.rules.training = TrainingMode::interleaved;
  EXPECT_THAT(codes_at(sample, 20), ::testing::ElementsAre("resource-exceeded"));
  sample.plan.stages[1].offset = 8.5;
  EXPECT_THAT(codes_at(sample, 20), ::testing::IsEmpty());
}

TEST(PipelineValue, ReplicasOfOneSpaceExchangeNothing) {
  Sample sample = training();
  sample.draft.rules.max_replicas = 2;
  sample.draft.rules.replica_bandwidth = 2;
  sample.draft.cluster.spaces = {{"card", 20}};
  sample.draft.cluster.devices[1].space = sample.draft.cluster.devices[2].space = SpaceId{0};
  sample.plan.stages = {{devices({0}), ops({0, 3}), 8.5}, {devices({1, 2}), ops({1, 2}), 5.75}};
  EXPECT_THAT(codes_of(sample), ::testing::IsEmpty());
}

// The backward op b1 on acc2 reads f0's tensor, which f1 beside it in the same space reads forward:
// the transfer is forward, to acc1; acc2 takes the tensor in backward.
TEST(PipelineValue, TransfersBelongToAPassBySpaceAndReceivesByDevice) {
  Sample sample = training();
  ProblemDraft& draft = sample.draft;
  draft.rules.training = TrainingMode::phased;
  draft.colocated.clear();
  draft.tensors = {tensor(0, {1, 2}, 1, 1)};
  draft.cluster.spaces = {{"card", kInfinity}};
  draft.cluster.devices[1].space = draft.cluster.devices[2].space = SpaceId{0};
  draft.tensors[0].cuts = {{KindId{0}, 0.25, 0.5}};
  sample.plan.placement = placed({0, 1, 2, 0});
  // forward: acc0 2 + 0.25 + 1, acc1 3 + 0.5 + 1; backward: acc0 5, acc2 7 + 0.5
  EXPECT_DOUBLE_EQ(value_of(sample), 4.5 + 7.5);
}

}  // namespace
}  // namespace placewright::testing
