// Small random problems against brute force, and the published operator graphs.

#include <gtest/gtest.h>

#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force_calls.h"
#include "support/published.h"
#include "support/random_cases.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

constexpr double kTolerance = 1e-7;

PlanOutcome exact_plan(const Problem& problem) {
  static const Registry registry = planning_registry();
  PlanRequest request;
  request.planner = "calls-exact";
  request.budget.seconds = 120;
  return make_plan(problem, registry, request);
}

// Host memory is unlimited, so a plan exists unless ops are pinned to what cannot hold them.
ProblemDraft draft_of(std::uint64_t seed, int calls_per_device) {
  testing::RandomProblemOptions options;
  options.objective = Objective::call_latency;
  options.interconnect = InterconnectKind::host;
  options.ops = calls_per_device == 1 ? 7 : 5;
  options.devices = 3;
  options.edge_probability = 0.15 + 0.1 * static_cast<double>(seed % 6);
  options.binding_memory = seed % 4 != 0;
  options.unsupported = seed % 5 == 1;
  options.pins = seed % 7 == 2;
  options.colocation = seed % 3 != 0;
  options.overheads = seed % 5 == 3;
  options.cuts = seed % 5 > 2;
  options.zero_times = seed % 2 == 0;
  ProblemDraft draft = testing::random_draft(options, 10000 + seed);
  draft.rules.calls_per_device = calls_per_device;
  for (Device& device : draft.cluster.devices) {
    if (draft.cluster.kinds[device.kind.index()].on_host) device.memory = kInfinity;
  }
  return draft;
}

TEST(CallsExactFull, IsOptimalOnOneCallPerDevice) {
  for (const std::uint64_t seed : testing::random_cases()) {
    const Problem problem(draft_of(seed, 1));
    const auto least = testing::brute_force_call_latency(problem);
    const PlanOutcome outcome = exact_plan(problem);
    ASSERT_EQ(outcome.answer.plan.has_value(), least.has_value()) << seed;
    if (!least) continue;
    ASSERT_EQ(outcome.answer.status(), Status::optimal) << seed;
    ASSERT_NEAR(outcome.value(), *least, kTolerance * (1 + *least)) << seed;
  }
}

TEST(CallsExactFull, EnclosesTheOptimumOnTwoCallsPerDevice) {
  for (const std::uint64_t seed : testing::random_cases(500)) {
    const Problem problem(draft_of(seed, 2));
    const auto least = testing::brute_force_call_latency(problem);
    const PlanOutcome outcome = exact_plan(problem);
    if (!least) {
      ASSERT_FALSE(outcome.answer.plan) << seed;
      continue;
    }
    ASSERT_LE(outcome.answer.certificate.lower_bound, *least * (1 + kTolerance)) << seed;
    ASSERT_GE(outcome.value(), *least * (1 - kTolerance)) << seed;
  }
}

TEST(CallsExactFull, ProvesThePublishedOperatorGraphs) {
  struct Published {
    const char* name;
    double optimum;
  };
  for (const Published& input :
       {Published{"bert_l-3", 408.47440818}, Published{"bert_l-6", 438.06248656}}) {
    const std::string path =
        "msr/latency/OperatorGraphs/" + std::string{input.name} + "_inference.json";
    const PlanOutcome outcome =
        exact_plan(testing::published_problem(path, Objective::call_latency));
    EXPECT_EQ(outcome.answer.status(), Status::optimal) << path;
    EXPECT_NEAR(outcome.value(), input.optimum, 1e-6) << path;
  }
}

}  // namespace
}  // namespace placewright
