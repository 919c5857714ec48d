// The planners for call-latency against brute force and on the published inputs.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "bounds/call_ideals.h"
#include "planners/methods/walk_search.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force_calls.h"
#include "support/published.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::brute_force_call_latency;
using testing::RandomProblemOptions;

constexpr double kTolerance = 1e-7;

PlanOutcome plan_within(const Problem& problem, const std::string& planner, const Budget& budget) {
  static const Registry registry = planning_registry();
  return make_plan(problem, registry, {.planner = planner, .budget = budget});
}

PlanOutcome plan_with(const Problem& problem, const std::string& planner, double seconds = 60) {
  return plan_within(problem, planner, {.seconds = seconds});
}

// Odd seeds limit the memory of the accelerators only, so that plans surely exist.
ProblemDraft small_draft(std::uint64_t seed, int calls_per_device, std::size_t ops) {
  RandomProblemOptions options;
  options.objective = Objective::call_latency;
  options.interconnect = InterconnectKind::host;
  options.ops = ops;
  options.devices = 3;
  options.edge_probability = 0.2 + 0.1 * static_cast<double>(seed % 5);
  options.binding_memory = seed % 4 != 0;
  options.unsupported = seed % 6 == 1;
  options.pins = seed % 7 == 2;
  options.colocation = seed % 3 == 0;
  options.shared_weights = seed % 8 == 5;
  options.overheads = seed % 5 == 3;
  options.cuts = seed % 5 > 2;
  options.zero_times = seed % 2 == 0;
  ProblemDraft draft = random_draft(options, seed);
  draft.rules.calls_per_device = calls_per_device;
  if (seed % 2 == 1) {
    for (Device& device : draft.cluster.devices) {
      if (draft.cluster.kinds[device.kind.index()].on_host) device.memory = kInfinity;
    }
  }
  return draft;
}

bool is_exact_case(const Problem& problem) {
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device) && problem.device(device).memory < kInfinity) return false;
  }
  return problem.rules().calls_per_device == 1 && problem.shared_weight_count() == 0;
}

// Above the bound, not below the optimum, and the optimum itself where the search is exact.
void compare_with_brute_force(const Problem& problem) {
  const auto least = brute_force_call_latency(problem);
  const PlanOutcome outcome = plan_with(problem, "calls-exact");
  ASSERT_EQ(outcome.fault, "");
  if (!least) {
    EXPECT_FALSE(outcome.answer.plan);
    return;
  }
  EXPECT_FALSE(outcome.answer.proved_infeasible);
  EXPECT_LE(outcome.answer.certificate.lower_bound, *least * (1 + kTolerance));
  for (const Bound& bound : lower_bounds(problem)) {
    EXPECT_LE(bound.value, *least * (1 + kTolerance)) << bound.name;
  }
  EXPECT_GE(outcome.value(), *least * (1 - kTolerance));
  if (is_exact_case(problem)) {
    EXPECT_EQ(outcome.answer.status(), Status::optimal);
    EXPECT_NEAR(outcome.value(), *least, kTolerance * (1 + *least));
  }
}

TEST(CallsExact, AgreesWithBruteForceOnOneCallPerDevice) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    compare_with_brute_force(Problem(small_draft(seed, 1, 6)));
  }
}

TEST(CallsExact, IsBoundedByBruteForceOnTwoCallsPerDevice) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    compare_with_brute_force(Problem(small_draft(seed, 2, 5)));
  }
}

// Bounds with ops left out, from the coarsest to the finest.
TEST(CallIdeals, BoundEveryPlanHoweverManyOpsAreLeftOut) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Problem problem(small_draft(seed, 1, 6));
    const auto least = brute_force_call_latency(problem);
    if (!least) continue;
    for (const std::size_t limit : {1, 3, 6, 12, 100}) {
      CallIdeals ideals = finest_ideals(problem, limit, 1, [] { return false; });
      const auto never = [] { return false; };
      EXPECT_LE(*ideals.bound(never), *least * (1 + kTolerance)) << seed << " " << limit;
      const auto result = calls::search_walks(ideals, kInfinity, 1000000, never);
      ASSERT_TRUE(result.complete && result.walk);
      EXPECT_LE(result.walk->value, *least * (1 + kTolerance)) << seed << " " << limit;
      EXPECT_GE(result.walk->value, *ideals.bound(never) * (1 - kTolerance));
    }
  }
}

// The same with the heaviest ops kept, wherever they are.
TEST(CallIdeals, BoundEveryPlanByTheHeaviestOps) {
  const auto never = [] { return false; };
  int raised = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const int calls = seed % 3 == 0 ? 2 : 1;
    const Problem problem(small_draft(seed, calls, 5));
    const auto least = brute_force_call_latency(problem);
    if (!least) continue;
    for (const std::size_t limit : {2, 4, 8, 100}) {
      CallIdeals ideals = heaviest_ideals(problem, limit, calls, never);
      EXPECT_LE(*ideals.bound(never), *least * (1 + kTolerance)) << seed << " " << limit;
      const auto result = calls::search_walks(ideals, kInfinity, 1000000, never);
      ASSERT_TRUE(result.complete && result.walk) << seed << " " << limit;
      EXPECT_LE(result.walk->value, *least * (1 + kTolerance)) << seed << " " << limit;
      CallIdeals ends = finest_ideals(problem, limit, calls, never);
      if (*ideals.bound(never) > *ends.bound(never) * (1 + kTolerance)) ++raised;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(raised, 20);
}

double optimum(ProblemDraft draft) {
  const PlanOutcome outcome = plan_with(Problem(std::move(draft)), "calls-exact");
  return outcome.answer.plan ? outcome.value() : kInfinity;
}

TEST(CallsExact, IsNoWorseWithMoreMemoryOrAnotherAccelerator) {
  for (std::uint64_t seed = 1; seed < 200; seed += 2) {
    const ProblemDraft draft = small_draft(seed, 1, 9);
    if (!draft.shared_weights.empty()) continue;
    const double before = optimum(draft);
    if (before == kInfinity) continue;
    ProblemDraft larger = draft;
    for (Device& device : larger.cluster.devices) device.memory *= 1.5;
    EXPECT_LE(optimum(larger), before * (1 + kTolerance)) << seed;
    ProblemDraft more = draft;
    for (const Device& device : draft.cluster.devices) {
      if (draft.cluster.kinds[device.kind.index()].on_host) continue;
      more.cluster.devices.push_back(device);
      more.cluster.devices.back().name = "another";
      break;
    }
    EXPECT_LE(optimum(more), before * (1 + kTolerance)) << seed;
  }
}

// a -> b and c -> d, with a and d on one accelerator, b and c on the other: each call waits for the
// other.
TEST(CallPlanners, NeverMakeCallsThatWaitForEachOther) {
  ProblemDraft draft;
  draft.objective = Objective::call_latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"accelerator"}, {"host", true}};
  draft.cluster.devices = {{.name = "acc0", .kind = KindId{0}},
                           {.name = "acc1", .kind = KindId{0}},
                           {.name = "cpu", .kind = KindId{1}}};
  draft.models = {{.name = "m"}};
  for (const char* name : {"a", "b", "c", "d"}) {
    draft.ops.push_back({.name = name, .time = {1, 100}});
  }
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}}, .host_time = 0.1},
                   {.producer = OpId{2}, .consumers = {OpId{3}}, .host_time = 0.1}};
  draft.ops[0].pinned_to = draft.ops[3].pinned_to = DeviceId{0};
  const Problem problem(draft);

  Placement deadlock(4);
  deadlock[OpId{0}] = deadlock[OpId{3}] = DeviceId{0};
  deadlock[OpId{1}] = deadlock[OpId{2}] = DeviceId{1};
  Plan plan;
  plan.placement = deadlock;
  plan.calls = {{DeviceId{0}, {OpId{0}, OpId{3}}, 0, 2.2},
                {DeviceId{1}, {OpId{1}, OpId{2}}, 0, 2.2}};
  plan.value = 2.2;
  EXPECT_FALSE(verify(problem, plan).empty());

  for (const char* planner : {"calls-greedy", "calls-chain", "calls-exact", "calls-search"}) {
    const PlanOutcome outcome = plan_with(problem, planner, 0.2);
    EXPECT_EQ(outcome.fault, "") << planner;
    const bool sound = !outcome.answer.plan || verify(problem, *outcome.answer.plan).empty();
    EXPECT_TRUE(sound) << planner;
  }
  EXPECT_NEAR(plan_with(problem, "calls-exact").value(), 4, 1e-9);
}

// Two streams of one GPU: each op of the middle leaves half of it to the other.
TEST(CallsSearch, RunsCallsSideBySideOnASharedResource) {
  ProblemDraft draft;
  draft.objective = Objective::call_latency;
  draft.cluster.interconnect = InterconnectKind::host;
  draft.cluster.kinds = {{"host", true}, {"gpu"}};
  draft.cluster.resources = {{"sm", 4}};
  draft.cluster.devices = {{.name = "h", .kind = KindId{0}},
                           {.name = "s0", .kind = KindId{1}, .uses = {{ResourceId{0}, 4}}},
                           {.name = "s1", .kind = KindId{1}, .uses = {{ResourceId{0}, 4}}}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "in", .time = {4, 2}},
               {.name = "left", .time = {20, 5}, .share = {1, 0.5}},
               {.name = "right", .time = {20, 5}, .share = {1, 0.5}},
               {.name = "out", .time = {3, 1.5}}};
  draft.tensors = {{.producer = OpId{0}, .consumers = {OpId{1}, OpId{2}}, .host_time = 0.1},
                   {.producer = OpId{1}, .consumers = {OpId{3}}, .host_time = 0.1},
                   {.producer = OpId{2}, .consumers = {OpId{3}}, .host_time = 0.1}};
  const PlanOutcome outcome =
      plan_within(Problem(std::move(draft)), "calls-search", {.seconds = 600, .steps = 50'000});
  EXPECT_EQ(outcome.fault, "");
  EXPECT_NEAR(outcome.value(), 12.2, 1e-9);
}

struct Published {
  const char* name;
  double optimum;
};

// 225.648 and 1156.88 were known as values, not as optima.
TEST(CallsExact, ProvesThePublishedLayerGraphs) {
  for (const Published& input : {Published{"bert24", 100.2185}, Published{"gnmt", 225.647890625},
                                 Published{"resnet50", 1156.88128125}}) {
    const std::string path =
        "msr/latency/LayerGraphs/" + std::string{input.name} + "_inference.json";
    for (const int calls : {1, 2, 4}) {
      auto file = testing::published_file(path, Objective::call_latency);
      file.draft.rules.calls_per_device = calls;
      const PlanOutcome outcome = plan_with(Problem(file.draft), "calls-exact");
      EXPECT_EQ(outcome.answer.status(), Status::optimal) << path << " " << calls;
      EXPECT_NEAR(outcome.value(), input.optimum, 1e-6) << path << " " << calls;
    }
  }
}

}  // namespace
}  // namespace placewright
