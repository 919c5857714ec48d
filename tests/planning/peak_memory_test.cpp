// `--memory peak` through the service: no planner hands out a plan that holds too much.

#include <gtest/gtest.h>

#include "evaluate/simulate.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::random_draft;
using testing::RandomProblemOptions;

PlanRequest request_for(const std::string& planner) {
  PlanRequest request;
  request.planner = planner;
  request.budget = Budget{.seconds = 20, .steps = 100, .threads = 1, .seed = 5};
  return request;
}

// Devices have what the weights need and `share` of the rest that a plain plan holds at its peak.
ProblemDraft with_tight_peak(ProblemDraft draft, const Registry& registry, double share) {
  draft.rules.memory = MemoryModel::resident;
  const Problem problem(draft);
  const PlanOutcome plain = make_plan(problem, registry, request_for("topo"));
  draft.rules.memory = MemoryModel::peak;
  if (!plain.answer.plan) return draft;
  const Simulation simulation = simulate(problem, *plain.answer.plan);
  for (const DeviceId device : problem.devices()) {
    const DeviceSummary& use = simulation.devices[device];
    draft.cluster.devices[device.index()].memory =
        use.resident + share * (use.peak - use.resident) + 30;
  }
  return draft;
}

TEST(PeakMemory, EveryPlanHandedOutIsWithinIt) {
  const Registry registry = planning_registry();
  std::size_t plans = 0;
  std::size_t unknown = 0;
  for (const Objective objective :
       {Objective::latency, Objective::total_completion, Objective::throughput}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      RandomProblemOptions options;
      options.objective = objective;
      options.interconnect = seed % 2 == 0 ? InterconnectKind::host : InterconnectKind::links;
      options.ops = 8;
      options.models = objective == Objective::total_completion ? 2 : 1;
      options.colocation = seed % 3 == 0;
      options.training = objective == Objective::throughput && seed % 4 == 1;
      const double share = 0.4 + 0.2 * static_cast<double>(seed % 5);
      const Problem problem(with_tight_peak(random_draft(options, seed), registry, share));
      for (const PlannerEntry* entry : registry.fitting(problem)) {
        const PlanOutcome outcome = make_plan(problem, registry, request_for(entry->name));
        EXPECT_EQ(outcome.fault, "") << entry->name << ", seed " << seed;
        if (!outcome.answer.plan) {
          EXPECT_NE(outcome.answer.reason, "");
          ++unknown;
          continue;
        }
        ++plans;
        EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
        EXPECT_FALSE(device_over_peak(problem, simulate(problem, *outcome.answer.plan)));
      }
    }
  }
  EXPECT_GT(plans, 100U) << unknown << " unknown";
  EXPECT_GT(unknown, 0U);
}

// Two ops whose outputs fit only one after the other: a schedule that runs both at once on two
// devices is fine, on one device they must follow each other.
TEST(PeakMemory, SaysWhichDeviceHoldsTooMuch) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "only", .kind = KindId{0}, .memory = 150}};
  draft.models = {{.name = "m"}};
  draft.rules.memory = MemoryModel::peak;
  for (const char* name : {"a", "b", "c"}) draft.ops.push_back({.name = name, .time = {1.0}});
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{2}}, .bytes = 100},
                   {.producer = OpId{1}, .consumers = {OpId{2}}, .bytes = 100}};
  const Registry registry = planning_registry();
  const PlanOutcome outcome = make_plan(Problem(draft), registry, request_for("heft"));
  EXPECT_EQ(outcome.answer.status(), Status::unknown);
  EXPECT_EQ(outcome.fault, "");
  EXPECT_NE(outcome.answer.reason.find("'only' would hold 200 bytes at once and has 150 bytes"),
            std::string::npos)
      << outcome.answer.reason;
  draft.cluster.devices[0].memory = 200;
  EXPECT_TRUE(make_plan(Problem(draft), registry, request_for("heft")).answer.plan);
  draft.cluster.spaces = {{"ram", 150}};
  draft.cluster.devices[0].memory = kInfinity;
  draft.cluster.devices[0].space = SpaceId{0};
  const PlanOutcome shared = make_plan(Problem(draft), registry, request_for("heft"));
  EXPECT_NE(shared.answer.reason.find("memory space 'ram' would hold 200 bytes"), std::string::npos)
      << shared.answer.reason;
  draft.ops[0].memory = 300;
  const PlanOutcome never = make_plan(Problem(draft), registry, request_for("heft"));
  EXPECT_NE(never.answer.reason.find("the largest for it, memory space 'ram', has 150 bytes"),
            std::string::npos)
      << never.answer.reason;
}

// One lane too many: both chains at once hold twice as much as one after the other.
TEST(PeakMemory, RunsOneAfterTheOtherWhereBothAtOnceDoNotFit) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"k"}};
  draft.cluster.devices = {{.name = "only", .kind = KindId{0}, .memory = 200, .lanes = 2}};
  draft.models = {{.name = "m"}};
  draft.rules.memory = MemoryModel::peak;
  for (const char* name : {"a", "b", "c", "d"}) draft.ops.push_back({.name = name, .time = {1.0}});
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .bytes = 150},
                   {.producer = OpId{2}, .consumers = {OpId{3}}, .bytes = 150}};
  const Problem problem(draft);
  const PlanOutcome outcome = make_plan(problem, planning_registry(), request_for("heft"));
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_DOUBLE_EQ(outcome.value(), 4);
}

}  // namespace
}  // namespace placewright
