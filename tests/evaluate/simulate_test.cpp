#include "evaluate/simulate.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "evaluate/cost_model.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "evaluate/serial_schedule.h"
#include "support/random_plan.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::random_draft;
using testing::random_placement;
using testing::RandomProblemOptions;
using testing::RandomSource;

bool exceeds_peak(const Problem& problem, const Plan& plan) {
  const auto violations = verify(problem, plan);
  return std::any_of(violations.begin(), violations.end(), [](const Violation& violation) {
    return violation.code == ViolationCode::peak_memory_exceeded;
  });
}

struct PeakCase {
  Objective objective;
  InterconnectKind interconnect;
};

RandomProblemOptions options_for(const PeakCase& peak_case, std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = peak_case.objective;
  options.interconnect = peak_case.interconnect;
  options.ops = 4 + seed % 14;
  options.congestion = seed % 2 == 0;
  options.lanes = seed % 3 == 0 && is_schedule(peak_case.objective);
  options.overheads = seed % 4 == 0;
  options.zero_times = seed % 5 == 0;
  options.shared_weights = seed % 3 == 1;
  options.training = seed % 2 == 1 && peak_case.objective == Objective::throughput;
  options.models = peak_case.objective == Objective::total_completion ? 2 : 1;
  return options;
}

// Each schedule of a pipeline, for steps of up to 20 micro-batches and for a stream without end.
Rules with_schedule(Rules rules, std::uint64_t seed) {
  const auto schedules = values_of<PipelineSchedule>();
  rules.schedule = schedules[seed % schedules.size()];
  const bool all = rules.schedule == PipelineSchedule::gpipe;
  rules.micro_batches = static_cast<int>(seed / 3 % 20) + (all ? 1 : 0);
  return rules;
}

// With exactly the memory that the simulation names the verifier is content; with a little less on
// any one device it is not. The verifier has its own reckoning of what is alive when.
TEST(Simulate, PeakIsWhatTheVerifierFinds) {
  const PeakCase cases[] = {{Objective::latency, InterconnectKind::links},
                            {Objective::latency, InterconnectKind::host},
                            {Objective::total_completion, InterconnectKind::links},
                            {Objective::throughput, InterconnectKind::links},
                            {Objective::throughput, InterconnectKind::host}};
  std::size_t tightened = 0;
  for (const PeakCase& peak_case : cases) {
    for (std::uint64_t seed = 1; seed <= 120; ++seed) {
      ProblemDraft draft = random_draft(options_for(peak_case, seed), seed);
      draft.rules.contiguity = Contiguity::none;
      draft.rules.memory = MemoryModel::peak;
      if (peak_case.objective == Objective::throughput) {
        draft.rules = with_schedule(draft.rules, seed);
      }
      const Problem problem(draft);
      RandomSource random(seed);
      const auto plan = plan_of_placement(problem, random_placement(problem, random));
      ASSERT_TRUE(plan);
      const Simulation simulation = simulate(problem, *plan);
      for (const DeviceId device : problem.devices()) {
        draft.cluster.devices[device.index()].memory = simulation.devices[device].peak;
      }
      EXPECT_FALSE(exceeds_peak(Problem(draft), *plan)) << "seed " << seed;
      EXPECT_FALSE(device_over_peak(Problem(draft), simulation));
      for (const DeviceId device : problem.devices()) {
        const DeviceSummary& summary = simulation.devices[device];
        if (summary.peak <= summary.resident) continue;
        ProblemDraft tight = draft;
        tight.cluster.devices[device.index()].memory = summary.peak * (1 - 1e-6);
        if (tight.cluster.devices[device.index()].memory < summary.resident) continue;
        ++tightened;
        EXPECT_TRUE(exceeds_peak(Problem(tight), *plan)) << "seed " << seed;
        EXPECT_EQ(device_over_peak(Problem(tight), simulation), device);
      }
    }
  }
  EXPECT_GT(tightened, 500U);
}

TEST(Simulate, InterleavedStagesHoldWhatTheEngineDoes) {
  // By torch.distributed.pipelining's ScheduleInterleaved1F1B: spaces, stages, micro-batches,
  // samples.
  struct Case {
    std::size_t loop;
    std::size_t stages;
    int micro_batches;
    std::vector<double> samples;
  };
  const Case cases[] = {{2, 4, 4, {4, 3, 2, 1}},
                        {2, 4, 2, {2, 2, 2, 1}},
                        {2, 6, 8, {4, 4, 3, 2, 2, 1}},
                        {4, 8, 8, {8, 8, 7, 5, 4, 4, 3, 1}},
                        {4, 8, 4, {4, 4, 4, 4, 4, 4, 3, 1}}};
  for (const Case& known : cases) {
    ProblemDraft draft = random_draft({.objective = Objective::throughput, .training = true}, 1);
    draft.rules.schedule = PipelineSchedule::interleaved;
    draft.rules.micro_batches = known.micro_batches;
    const Problem problem(draft);
    for (std::size_t i = 0; i < known.stages; ++i) {
      EXPECT_EQ(samples_in_flight(problem, {i, known.stages, known.loop}), known.samples[i])
          << known.loop << " spaces, stage " << i << " of " << known.stages;
    }
  }
}

// Stages of one space under `interleaved`: simulation and verifier count the same bytes.
TEST(Simulate, StagesOfOneSpaceHoldWhatTheVerifierCounts) {
  std::size_t tightened = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomProblemOptions options{.objective = Objective::throughput,
                                 .interconnect = InterconnectKind::links,
                                 .ops = 12,
                                 .devices = 6,
                                 .training = true,
                                 .spaces = true};
    ProblemDraft draft = random_draft(options, seed);
    draft.rules.contiguity = Contiguity::none;
    draft.rules.memory = MemoryModel::peak;
    draft.rules = with_schedule(draft.rules, seed);
    for (Space& space : draft.cluster.spaces) space.memory = kInfinity;
    for (Device& device : draft.cluster.devices) device.memory = kInfinity;
    const Problem problem(draft);
    RandomSource random(seed);
    const auto plan = plan_of_placement(problem, random_placement(problem, random));
    ASSERT_TRUE(plan);
    const Simulation simulation = simulate(problem, *plan);
    for (const DeviceId device : problem.devices()) {
      const DeviceSummary& summary = simulation.devices[device];
      if (summary.peak <= summary.resident) continue;
      const SpaceId named = problem.device(device).space;
      ProblemDraft tight = draft;
      double& memory = named.valid() ? tight.cluster.spaces[named.index()].memory
                                     : tight.cluster.devices[device.index()].memory;
      memory = summary.peak;
      EXPECT_FALSE(exceeds_peak(Problem(tight), *plan)) << "seed " << seed;
      memory = std::max(summary.resident, summary.peak * (1 - 1e-6));
      EXPECT_TRUE(exceeds_peak(Problem(tight), *plan)) << "seed " << seed;
      ++tightened;
    }
  }
  EXPECT_GT(tightened, 500U);
}

TEST(Simulate, TimesOfAScheduleAddUp) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Problem problem(
        random_draft(options_for({Objective::latency, InterconnectKind::links}, seed), seed));
    RandomSource random(seed);
    const auto plan = plan_of_placement(problem, random_placement(problem, random));
    ASSERT_TRUE(plan);
    const Simulation simulation = simulate(problem, *plan);
    std::size_t ops = 0;
    double sent = 0;
    double received = 0;
    for (const DeviceId device : problem.devices()) {
      const DeviceSummary& summary = simulation.devices[device];
      ops += summary.ops;
      sent += summary.sending;
      received += summary.receiving;
      EXPECT_NEAR(summary.busy + summary.idle, simulation.end * problem.device(device).lanes,
                  1e-9 * simulation.end);
      EXPECT_GE(summary.idle, -1e-9 * simulation.end);
      EXPECT_GE(summary.peak, summary.resident);
    }
    EXPECT_EQ(ops, problem.op_count());
    EXPECT_NEAR(sent, received, 1e-9 * std::max(1.0, sent));
  }
}

// What accelerators are busy with is all that a call is made of, as the evaluator adds it up.
TEST(Simulate, CallsAreComputeTransfersAndOverheads) {
  std::size_t moved = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomProblemOptions options{.objective = Objective::call_latency,
                                 .interconnect = InterconnectKind::host};
    options.overheads = true;
    options.cuts = seed % 2 == 0;
    ProblemDraft draft = random_draft(options, seed);
    draft.rules.calls_per_device = 8;
    const Problem problem(std::move(draft));
    RandomSource random(seed);
    const auto plan = plan_of_placement(problem, random_placement(problem, random));
    if (!plan) continue;  // deadlocked
    const Simulation simulation = simulate(problem, *plan);
    double busy = 0;
    double parts = 0;
    for (const DeviceId device : problem.devices()) {
      const DeviceSummary& summary = simulation.devices[device];
      if (problem.on_host(device)) {
        EXPECT_DOUBLE_EQ(summary.busy, summary.compute);
        EXPECT_EQ(summary.sending + summary.receiving, 0);
        continue;
      }
      busy += summary.busy;
      parts += summary.compute + summary.sending + summary.receiving;
    }
    if (parts > 0) ++moved;
    for (const double time : cost_model(problem).overheads(problem, *plan)) parts += time;
    EXPECT_NEAR(busy, parts, 1e-9 * std::max(1.0, busy)) << "seed " << seed;
  }
  EXPECT_GT(moved, 100U);
}

TEST(SerialPlan, IsValid) {
  for (const InterconnectKind interconnect : {InterconnectKind::links, InterconnectKind::host}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      const Objective objective = seed % 2 == 0 ? Objective::latency : Objective::total_completion;
      const Problem problem(random_draft(options_for({objective, interconnect}, seed), seed));
      RandomSource random(seed);
      const Plan plan = serial_plan(problem, random_placement(problem, random));
      const auto violations = verify(problem, plan);
      EXPECT_TRUE(violations.empty()) << violations.front().message;
    }
  }
}

// Ops back to back, the last one first in the list: their lengths add up to a little less than the
// end, and what is left is not idle time.
TEST(Simulate, RoundingIsNoIdleTime) {
  constexpr std::size_t kOps = 26;
  ProblemDraft draft;
  draft.cluster.kinds = {{"kind"}};
  draft.cluster.devices = {{"a", KindId{0}}};
  draft.models = {{"model"}};
  Plan plan;
  plan.placement = Placement(kOps, DeviceId{0});
  plan.schedule = Schedule{Table<OpId, double>(kOps), Table<OpId, double>(kOps), {}};
  double end = 0;
  for (std::size_t i = 0; i < kOps; ++i) {
    const double time = 1.0 / static_cast<double>(i + 1);
    const OpId op{kOps - 1 - i};
    draft.ops.insert(draft.ops.begin(), {.name = "op" + std::to_string(i), .time = {time}});
    plan.schedule->start[op] = end;
    plan.schedule->end[op] = end += time;
  }
  const Problem problem(std::move(draft));
  const DeviceSummary summary = simulate(problem, plan).devices[DeviceId{0}];
  EXPECT_LT(summary.busy, end);
  EXPECT_EQ(summary.idle, 0);
}

}  // namespace
}  // namespace placewright
