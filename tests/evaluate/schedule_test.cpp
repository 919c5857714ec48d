#include "evaluate/schedule.h"

#include <gtest/gtest.h>

#include "formats/problem_file.h"
#include "support/brute_force.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::RandomProblemOptions;
using testing::RandomSource;

// Two devices; a -> b, a -> c; each edge its own tensor of 2 time units; every op takes 3.
ProblemDraft fork() {
  ProblemDraft draft;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}}, {.name = "d1", .kind = KindId{0}}};
  draft.models = {{.name = "m"}};
  for (const char* name : {"a", "b", "c"}) draft.ops.push_back({.name = name, .time = {3}});
  const std::vector<double> table{0, 2, 2, 0};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .link_times = table},
                   {.producer = OpId{0}, .consumers = {OpId{2}}, .link_times = table}};
  return draft;
}

Placement placement_of(std::initializer_list<std::size_t> devices) {
  Placement placement;
  for (const std::size_t device : devices) placement.push_back(DeviceId{device});
  return placement;
}

TEST(ScheduleEvaluator, CountsTransfersBetweenDevicesOnly) {
  const Problem problem(fork());
  ScheduleEvaluator evaluator(problem);
  const auto order = problem.topological_order();
  EXPECT_EQ(evaluator.value(order, placement_of({0, 0, 0})), 9);
  EXPECT_EQ(evaluator.value(order, placement_of({0, 0, 1})), 8);
}

TEST(ScheduleEvaluator, TransfersQueueAtPortsOnlyUnderCongestion) {
  ProblemDraft draft = fork();
  draft.cluster.devices.push_back({.name = "d2", .kind = KindId{0}});
  for (Tensor& tensor : draft.tensors) tensor.link_times = {0, 2, 2, 2, 0, 2, 2, 2, 0};
  const Placement apart = placement_of({0, 1, 2});
  const Problem congested(draft);
  EXPECT_EQ(ScheduleEvaluator(congested).value(congested.topological_order(), apart), 10);
  draft.rules.congestion = false;
  const Problem free(draft);
  EXPECT_EQ(ScheduleEvaluator(free).value(free.topological_order(), apart), 8);
}

TEST(ScheduleEvaluator, SendsASharedTensorOnceToEachDevice) {
  ProblemDraft draft = fork();
  draft.tensors = {
      {.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}, .link_times = {0, 2, 2, 0}}};
  const Problem problem(draft);
  ScheduleEvaluator evaluator(problem);
  const Placement away = placement_of({0, 1, 1});
  EXPECT_EQ(evaluator.value(problem.topological_order(), away), 11);
  EXPECT_EQ(evaluator.schedule(problem.topological_order(), away).transfers.size(), 1U);
}

TEST(ScheduleEvaluator, AddsCutOverheadToTheOpsOnBothSides) {
  ProblemDraft draft = fork();
  draft.cluster.devices[0].send_overhead = 0.5;
  draft.cluster.devices[1].receive_overhead = 0.25;
  const Problem problem(draft);
  ScheduleEvaluator evaluator(problem);
  EXPECT_EQ(evaluator.value(problem.topological_order(), placement_of({0, 0, 1})), 8.75);
}

TEST(ScheduleEvaluator, IsInfiniteWithoutALink) {
  ProblemDraft draft = fork();
  draft.tensors[0].link_times = {0, kInfinity, 2, 0};
  const Problem problem(draft);
  ScheduleEvaluator evaluator(problem);
  EXPECT_EQ(evaluator.value(problem.topological_order(), placement_of({0, 1, 0})), kInfinity);
}

TEST(ScheduleEvaluator, WeighsModelsByArrivalAndWeight) {
  ProblemDraft draft;
  draft.objective = Objective::total_completion;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "d", .kind = KindId{0}}};
  draft.models = {{.name = "one", .weight = 2}, {.name = "two", .arrival = 5}};
  draft.ops = {{.name = "a", .model = ModelId{0}, .time = {3}},
               {.name = "b", .model = ModelId{1}, .time = {4}}};
  const Problem problem(draft);
  ScheduleEvaluator evaluator(problem);
  EXPECT_EQ(evaluator.value(problem.topological_order(), placement_of({0, 0})), 2 * 3 + 4);
}

TEST(Dispatch, LetsAFreeDeviceTakeTheMostUrgentReadyOp) {
  const Problem problem(fork());
  Table<OpId, double> priority(std::vector<double>{3, 1, 2});
  const Schedule schedule = dispatch(problem, placement_of({0, 0, 0}), priority);
  EXPECT_EQ(schedule.start[OpId{2}], 3);
  EXPECT_EQ(schedule.start[OpId{1}], 6);
}

TEST(Retime, KeepsTheOrderAndClosesTheGaps) {
  const Problem problem(fork());
  const Placement placement = placement_of({0, 0, 0});
  Schedule loose;
  loose.start = Table<OpId, double>(std::vector<double>{1, 20, 10});
  loose.end = Table<OpId, double>(std::vector<double>{4, 23, 13});
  const Schedule tight = retime(problem, placement, loose);
  EXPECT_EQ(tight.start, (Table<OpId, double>(std::vector<double>{0, 6, 3})));
}

TEST(UpwardRanks, AreLongestMeanPathsToTheEnd) {
  const Problem problem(fork());
  const auto ranks = upward_ranks(problem);
  EXPECT_DOUBLE_EQ(ranks[OpId{1}], 3);
  EXPECT_DOUBLE_EQ(ranks[OpId{0}], 3 + 1 + 3);  // mean transfer over 2 x 2 pairs is 1
}

// Every variant that a schedule can have.
std::vector<RandomProblemOptions> variants() {
  std::vector<RandomProblemOptions> all;
  for (const auto interconnect : {InterconnectKind::links, InterconnectKind::host}) {
    for (const bool congestion : {true, false}) {
      for (const bool several : {false, true}) {
        RandomProblemOptions options;
        options.objective = several ? Objective::total_completion : Objective::latency;
        options.interconnect = interconnect;
        options.congestion = congestion;
        options.models = several ? 3 : 1;
        options.ops = 10;
        options.unsupported = options.colocation = options.pins = true;
        options.zero_times = options.lanes = options.overheads = true;
        options.missing_links = true;
        all.push_back(options);
      }
    }
  }
  return all;
}

bool has_devices_for_all(const Placement& placement) {
  return std::all_of(placement.begin(), placement.end(),
                     [](DeviceId device) { return device.valid(); });
}

// A schedule that the evaluator makes is accepted by the verifier with the same value, and where
// the evaluator sees no link the verifier sees none.
void expect_agreement(const Problem& problem, const Placement& placement, const Schedule& schedule,
                      double value) {
  Plan plan = schedule_plan(problem, placement, schedule);
  const auto violations = verify(problem, plan);
  if (value == kInfinity) {
    EXPECT_FALSE(violations.empty());
    return;
  }
  ASSERT_TRUE(violations.empty()) << violations.front().message;
  EXPECT_NEAR(verified_value(problem, plan), value, 1e-9 * (1 + value));
}

class VerifierAgreement : public ::testing::TestWithParam<RandomProblemOptions> {};

TEST_P(VerifierAgreement, OnEveryWayToMakeASchedule) {
  // 1,300 x 8 variants: above 10,000 problems, three schedules each.
  for (std::uint64_t seed = 0; seed < 1300; ++seed) {
    SCOPED_TRACE(seed);
    const Problem problem(testing::random_draft(GetParam(), seed));
    RandomSource random(seed);
    const Placement placement = testing::random_placement(problem, random);
    if (!has_devices_for_all(placement)) continue;
    const auto priority = testing::random_priority(problem, random);
    const auto order = list_order(problem, priority);
    ScheduleEvaluator evaluator(problem);
    const double value = evaluator.value(order, placement);
    const Schedule serial = evaluator.schedule(order, placement);
    expect_agreement(problem, placement, serial, value);
    if (value == kInfinity) continue;
    const Schedule eager = dispatch(problem, placement, priority);
    expect_agreement(problem, placement, eager, schedule_value(problem, eager.end));
    const Schedule again = retime(problem, placement, serial);
    expect_agreement(problem, placement, again, schedule_value(problem, again.end));
    EXPECT_LE(schedule_value(problem, again.end), value * (1 + 1e-12));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(AllVariants, VerifierAgreement, ::testing::ValuesIn(variants()));

TEST(ScheduleEvaluator, NeverBeatsBruteForceAndSomeOrderReachesIt) {
  RandomProblemOptions options;
  options.ops = 5;
  options.devices = 2;
  options.zero_times = true;
  std::size_t reached = 0;
  constexpr std::uint64_t kProblems = 60;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    const Problem problem(testing::random_draft(options, seed));
    RandomSource random(seed);
    const Placement placement = testing::random_placement(problem, random);
    const double least = testing::brute_force_schedule_value(problem, placement);
    ScheduleEvaluator evaluator(problem);
    double best = kInfinity;
    for (int i = 0; i < 200; ++i) {
      const auto order = list_order(problem, testing::random_priority(problem, random));
      const double value = evaluator.value(order, placement);
      EXPECT_GE(value, least * (1 - 1e-12)) << seed;
      best = std::min(best, value);
    }
    if (best <= least * (1 + 1e-12)) ++reached;
  }
  EXPECT_GE(reached, kProblems * 8 / 10);  // transfers just before their op are not always best
}

}  // namespace
}  // namespace placewright
