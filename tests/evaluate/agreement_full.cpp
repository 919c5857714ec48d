// Evaluators and verifier implement docs/semantics.md twice, on their own. Here they meet: 1,000
// random problems and plans for each objective and variant, most of them with resources, memory
// spaces or cut costs by tensor.

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evaluate/calls.h"
#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"
#include "support/random_cases.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::RandomProblemOptions;
using testing::RandomSource;
using Codes = std::set<ViolationCode>;

constexpr std::uint64_t kProblems = 1000;

Codes codes_of(const Problem& problem, const Plan& plan) {
  Codes codes;
  for (const Violation& violation : verify(problem, plan)) codes.insert(violation.code);
  return codes;
}

std::string names_of(const Codes& codes) {
  std::string names;
  for (const ViolationCode code : codes) names += fmt::format("{} ", name_of(code));
  return names;
}

void expect_same_value(double evaluated, double verified) {
  if (evaluated == kInfinity || verified == kInfinity) {
    EXPECT_EQ(evaluated, verified);
  } else {
    EXPECT_NEAR(evaluated, verified, 1e-9 * (1 + evaluated));
  }
}

// Runs along a topological order with some ops astray, so that contiguous placements and calls
// without deadlock are not rare.
Placement nearly_ordered(const Problem& problem, RandomSource& random) {
  Placement placement = testing::random_placement(problem, random);
  const double astray = random.chance(0.5) ? 0.1 : 0;
  for (const GroupId group : problem.groups()) {
    if (random.chance(astray)) continue;
    const auto ops = problem.group_ops(group);
    const std::size_t rank = problem.topological_rank(ops.front());
    const DeviceId run{rank * problem.device_count() / problem.op_count()};
    if (!problem.group_allowed(group, run)) continue;
    for (const OpId op : ops) placement[op] = run;
  }
  return placement;
}

bool complete(const Placement& placement) {
  return std::all_of(placement.begin(), placement.end(),
                     [](DeviceId device) { return device.valid(); });
}

bool pinned(const Problem& problem, const Stage& stage) {
  return std::any_of(stage.ops.begin(), stage.ops.end(), [&](OpId op) {
    const auto mates = problem.group_ops(problem.group(op));
    return std::any_of(mates.begin(), mates.end(),
                       [&](OpId mate) { return problem.op(mate).pinned_to.valid(); });
  });
}

// Lets idle devices join stages of their kind, as far as the rules allow.
void add_replicas(const Problem& problem, std::vector<Stage>& stages, RandomSource& random) {
  std::set<DeviceId> busy;
  for (const Stage& stage : stages) busy.insert(stage.devices.begin(), stage.devices.end());
  const auto most = static_cast<std::size_t>(problem.rules().max_replicas);
  for (const DeviceId device : problem.devices()) {
    if (busy.contains(device)) continue;
    for (Stage& stage : stages) {
      if (stage.devices.size() >= most || !random.chance(0.5) || pinned(problem, stage)) continue;
      if (problem.kind_of(stage.devices.front()) != problem.kind_of(device)) continue;
      stage.devices.push_back(device);
      break;
    }
  }
}

// A space holds every stage that has a replica there, once.
bool stages_fit(const Problem& problem, const Plan& plan) {
  return std::ranges::all_of(problem.spaces(), [&](SpaceId space) {
    double bytes = 0;
    std::set<WeightId> weights;
    for (const Stage& stage : plan.stages) {
      const bool here = std::ranges::any_of(
          stage.devices, [&](DeviceId device) { return problem.space(device) == space; });
      if (!here) continue;
      for (const OpId op : stage.ops) {
        bytes += problem.memory(op);
        for (const WeightId weight : problem.shared_weights(op)) weights.insert(weight);
      }
    }
    for (const WeightId weight : weights) {
      bytes += problem.draft().shared_weights[weight.index()].bytes;
    }
    return within_memory(bytes, problem.space_memory(space));
  });
}

// Two of three problems have some of what devices share.
void add_sharing(RandomProblemOptions& options, std::uint64_t seed) {
  options.resources = seed % 3 == 1;
  options.spaces = seed % 3 == 2 || seed % 7 == 1;
  options.cuts = seed % 6 == 4 || seed % 6 == 5;
}

struct PipelineVariant {
  InterconnectKind interconnect;
  TransferMode transfers;
  TrainingMode training;
  Contiguity contiguity;
};

std::string name_of_variant(const ::testing::TestParamInfo<PipelineVariant>& info) {
  std::string name = fmt::format(
      "{}_{}_{}_{}", info.param.interconnect == InterconnectKind::host ? "host" : "links",
      name_of(info.param.transfers), name_of(info.param.training), name_of(info.param.contiguity));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<PipelineVariant> pipeline_variants() {
  std::vector<PipelineVariant> all;
  for (const auto interconnect : {InterconnectKind::host, InterconnectKind::links}) {
    for (const auto transfers :
         {TransferMode::sequential, TransferMode::overlapped, TransferMode::duplex}) {
      for (const auto training : {TrainingMode::interleaved, TrainingMode::phased}) {
        for (const auto contiguity :
             {Contiguity::none, Contiguity::joint, Contiguity::per_device}) {
          all.push_back({interconnect, transfers, training, contiguity});
        }
      }
    }
  }
  return all;
}

Problem random_pipeline(const PipelineVariant& variant, std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = Objective::throughput;
  options.interconnect = variant.interconnect;
  options.ops = 6 + seed % 9;
  options.devices = 2 + seed % 5;
  options.edge_probability = seed % 2 == 0 ? 0.15 : 0.3;
  options.training = seed % 3 != 0;
  options.overheads = seed % 4 < 2;
  options.zero_times = seed % 5 == 0;
  options.binding_memory = seed % 7 == 0;
  options.shared_weights = seed % 7 < 2;
  options.missing_links = seed % 11 == 0;
  options.pins = seed % 6 == 0;
  options.colocation = seed % 6 == 1;
  options.unsupported = seed % 8 == 0;
  add_sharing(options, seed);
  ProblemDraft draft = testing::random_draft(options, seed);
  draft.rules.transfers = variant.transfers;
  draft.rules.training = variant.training;
  draft.rules.contiguity = variant.contiguity;
  draft.rules.max_replicas = 1 + static_cast<int>(seed % 3);
  draft.rules.replica_bandwidth = seed % 2 == 0 ? 0 : 3.5;
  return Problem(std::move(draft));
}

class PipelineAgreement : public ::testing::TestWithParam<PipelineVariant> {};

TEST_P(PipelineAgreement, OnValueContiguityLinksAndMemory) {
  std::size_t accepted = 0;
  std::size_t scattered = 0;
  std::size_t replicated = 0;
  for (const std::uint64_t seed : testing::random_cases(kProblems)) {
    SCOPED_TRACE(seed);
    const Problem problem = random_pipeline(GetParam(), seed);
    RandomSource random(seed);
    const Placement placement = nearly_ordered(problem, random);
    ASSERT_TRUE(complete(placement));
    std::vector<Stage> stages = stages_of(problem, placement);
    add_replicas(problem, stages, random);
    const Plan plan = pipeline_plan(problem, std::move(stages));
    const Codes codes = codes_of(problem, plan);

    // Replicas that would need more of a resource than there is can never run.
    const bool impossible =
        codes.contains(ViolationCode::no_link) || codes.contains(ViolationCode::resource_exceeded);
    ASSERT_EQ(impossible, plan.value == kInfinity) << names_of(codes);
    if (plan.value == kInfinity) continue;
    expect_same_value(plan.value, verified_value(problem, plan));
    ASSERT_EQ(codes.contains(ViolationCode::not_contiguous), !contiguous(problem, placement));
    ASSERT_EQ(codes.contains(ViolationCode::memory_exceeded), !stages_fit(problem, plan));
    // Stages in a circle have no order, so that complaint may come with the circle.
    Codes others = codes;
    if (others.erase(ViolationCode::not_contiguous) > 0) {
      others.erase(ViolationCode::stages_out_of_order);
      ++scattered;
    }
    others.erase(ViolationCode::memory_exceeded);
    ASSERT_TRUE(others.empty()) << names_of(others);
    accepted += codes.empty() ? 1 : 0;
    replicated += std::any_of(plan.stages.begin(), plan.stages.end(),
                              [](const Stage& stage) { return stage.devices.size() > 1; });
  }
  EXPECT_GT(accepted, kProblems / 10);
  EXPECT_GT(replicated, kProblems / 50);
  EXPECT_EQ(scattered == 0, GetParam().contiguity == Contiguity::none);
}

INSTANTIATE_TEST_SUITE_P(Throughput, PipelineAgreement, ::testing::ValuesIn(pipeline_variants()),
                         name_of_variant);

Problem random_call_problem(int calls_per_device, std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = Objective::call_latency;
  options.interconnect = InterconnectKind::host;
  options.ops = 5 + seed % 10;
  options.devices = 2 + seed % 4;
  options.edge_probability = seed % 2 == 0 ? 0.15 : 0.3;
  options.overheads = seed % 3 == 0;
  options.zero_times = seed % 5 == 0;
  options.binding_memory = seed % 7 == 0;
  options.shared_weights = seed % 7 < 2;
  options.pins = seed % 4 == 1;
  options.colocation = seed % 6 == 1;
  options.unsupported = seed % 8 == 0;
  add_sharing(options, seed);
  ProblemDraft draft = testing::random_draft(options, seed);
  draft.rules.calls_per_device = calls_per_device;
  return Problem(std::move(draft));
}

bool within_call_limit(const Problem& problem, const std::vector<Call>& calls) {
  Table<DeviceId, int> count(problem.device_count(), 0);
  for (const Call& call : calls) ++count[call.device];
  return std::all_of(count.begin(), count.end(),
                     [&](int number) { return number <= problem.rules().calls_per_device; });
}

// The plan as the evaluator has it, or without times where it sees a deadlock. A call that waits
// for itself has no times, so only its place in the order is stated.
Plan plan_or_deadlock(const Problem& problem, const Placement& placement,
                      const std::vector<Call>& calls) {
  if (auto plan = call_plan(problem, placement, calls)) return *std::move(plan);
  Plan plan;
  plan.placement = placement;
  plan.calls = calls;
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    plan.calls[i].start = static_cast<double>(i);
    plan.calls[i].end = static_cast<double>(i) + 1;
  }
  return plan;
}

void expect_calls_agree(const Problem& problem, const Placement& placement,
                        const std::vector<Call>& calls, std::size_t& deadlocks) {
  const bool deadlock = !call_plan(problem, placement, calls).has_value();
  const Plan plan = plan_or_deadlock(problem, placement, calls);
  Codes codes = codes_of(problem, plan);
  ASSERT_EQ(codes.contains(ViolationCode::calls_deadlock), deadlock) << names_of(codes);
  ASSERT_EQ(codes.contains(ViolationCode::too_many_calls), !within_call_limit(problem, calls));
  ASSERT_EQ(codes.contains(ViolationCode::memory_exceeded), !memory_fits(problem, placement));
  if (deadlock) {
    ++deadlocks;
    return;
  }
  expect_same_value(plan.value, verified_value(problem, plan));
  codes.erase(ViolationCode::too_many_calls);
  codes.erase(ViolationCode::memory_exceeded);
  ASSERT_TRUE(codes.empty()) << names_of(codes);
}

// Parts the ops of each accelerator by topological rank, some astray, into at most `most` calls.
std::vector<Call> random_calls(const Problem& problem, const Placement& placement, std::size_t most,
                               RandomSource& random) {
  std::vector<Call> calls;
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device)) continue;
    std::vector<Call> parts(most, Call{.device = device, .ops = {}});
    for (const OpId op : problem.ops()) {
      if (placement[op] != device) continue;
      const std::size_t run = problem.topological_rank(op) * most / problem.op_count();
      parts[random.chance(0.1) ? random.below(most) : run].ops.push_back(op);
    }
    std::erase_if(parts, [](const Call& call) { return call.ops.empty(); });
    calls.insert(calls.end(), parts.begin(), parts.end());
  }
  return calls;
}

class CallAgreement : public ::testing::TestWithParam<int> {};

TEST_P(CallAgreement, OnValueDeadlockAndNumberOfCalls) {
  std::size_t deadlocks = 0;
  std::size_t split_deadlocks = 0;
  std::size_t beyond_limit = 0;
  for (const std::uint64_t seed : testing::random_cases(kProblems)) {
    SCOPED_TRACE(seed);
    const Problem problem = random_call_problem(GetParam(), seed);
    RandomSource random(seed);
    const Placement placement = nearly_ordered(problem, random);
    ASSERT_TRUE(complete(placement));

    // The split that a bare placement stands for, on both sides.
    const std::vector<Call> split = split_into_calls(problem, placement);
    beyond_limit += within_call_limit(problem, split) ? 0 : 1;
    expect_calls_agree(problem, placement, split, split_deadlocks);
    const auto timed = call_plan(problem, placement, split);
    Plan bare;
    bare.placement = placement;
    if (timed) bare.value = timed->value;
    const Codes codes = codes_of(problem, bare);
    ASSERT_EQ(codes.contains(ViolationCode::calls_deadlock), !timed) << names_of(codes);
    if (problem.resource_count() == 0) {  // else it does not say who has them first
      ASSERT_FALSE(codes.contains(ViolationCode::value_wrong));
      expect_same_value(timed ? timed->value : kInfinity, verified_value(problem, bare));
    }

    // Calls of any other shape.
    const auto most = static_cast<std::size_t>(1 + seed % 4);
    const std::vector<Call> calls = random_calls(problem, placement, most, random);
    expect_calls_agree(problem, placement, calls, deadlocks);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(deadlocks, kProblems / 50);
  EXPECT_LT(deadlocks, kProblems / 2);
  EXPECT_GT(split_deadlocks, 0U);
  EXPECT_TRUE(GetParam() > 1 || beyond_limit > kProblems / 50);
}

INSTANTIATE_TEST_SUITE_P(CallLatency, CallAgreement, ::testing::Values(1, 2, 4));

struct ScheduleVariant {
  Objective objective;
  InterconnectKind interconnect;
  bool congestion;
};

std::vector<ScheduleVariant> schedule_variants() {
  std::vector<ScheduleVariant> all;
  for (const auto objective : {Objective::latency, Objective::total_completion}) {
    for (const auto interconnect : {InterconnectKind::links, InterconnectKind::host}) {
      for (const bool congestion : {true, false})
        all.push_back({objective, interconnect, congestion});
    }
  }
  return all;
}

Problem random_schedule_problem(const ScheduleVariant& variant, std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = variant.objective;
  options.interconnect = variant.interconnect;
  options.congestion = variant.congestion;
  options.models = variant.objective == Objective::latency ? 1 : 1 + seed % 3;
  options.ops = 5 + seed % 9;
  options.devices = 2 + seed % 4;
  options.edge_probability = seed % 2 == 0 ? 0.15 : 0.35;
  options.lanes = seed % 3 == 0;
  options.overheads = seed % 4 < 2;
  options.zero_times = seed % 5 == 0;
  options.binding_memory = seed % 7 == 0;
  options.shared_weights = seed % 7 < 2;
  options.missing_links = seed % 11 == 0;
  options.pins = seed % 6 == 0;
  options.colocation = seed % 6 == 1;
  options.unsupported = seed % 8 == 0;
  add_sharing(options, seed);
  return Problem(testing::random_draft(options, seed));
}

class ScheduleAgreement : public ::testing::TestWithParam<ScheduleVariant> {};

TEST_P(ScheduleAgreement, OnValueLinksAndMemory) {
  std::size_t accepted = 0;
  for (const std::uint64_t seed : testing::random_cases(kProblems)) {
    SCOPED_TRACE(seed);
    const Problem problem = random_schedule_problem(GetParam(), seed);
    RandomSource random(seed);
    const Placement placement = testing::random_placement(problem, random);
    ASSERT_TRUE(complete(placement));
    const auto priority = testing::random_priority(problem, random);
    const auto order = list_order(problem, priority);
    ScheduleEvaluator evaluator(problem);
    const double value = evaluator.value(order, placement);
    const bool eager = seed % 2 == 0 && value < kInfinity;
    const Schedule schedule =
        eager ? dispatch(problem, placement, priority) : evaluator.schedule(order, placement);
    const Plan plan = schedule_plan(problem, placement, schedule);
    Codes codes = codes_of(problem, plan);
    ASSERT_EQ(codes.contains(ViolationCode::no_link), value == kInfinity) << names_of(codes);
    if (value == kInfinity) continue;
    expect_same_value(plan.value, verified_value(problem, plan));
    if (!eager) {
      expect_same_value(plan.value, value);
    }
    ASSERT_EQ(codes.erase(ViolationCode::memory_exceeded) > 0, !memory_fits(problem, placement));
    ASSERT_TRUE(codes.empty()) << names_of(codes);
    ++accepted;
  }
  EXPECT_GT(accepted, kProblems / 2);
}

INSTANTIATE_TEST_SUITE_P(Schedules, ScheduleAgreement, ::testing::ValuesIn(schedule_variants()));

}  // namespace
}  // namespace placewright
