// exhaustive against the enumerations of the tests, which share no code with it: under every rule
// of contiguity, with and without replicas, and in several calls of a device.

#include <cstdint>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "planners/throughput_checks.h"
#include "support/brute_force_calls.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

using testing::drawn_options;
using testing::expect_optimal;
using testing::plan_with;
using testing::problem_from;

bool fits(const Problem& problem) {
  const PlannerEntry& entry = *testing::registry().find("exhaustive", problem.objective());
  return entry.refuses(problem).empty();
}

// How many of the problems it did not refuse.
int agreements(std::uint64_t count, int most_replicas) {
  int served = 0;
  for (const std::uint64_t seed : testing::random_cases(count)) {
    for (const Contiguity rule : {Contiguity::none, Contiguity::per_device, Contiguity::joint}) {
      testing::RandomPipelineOptions options = drawn_options(seed, 5);
      options.contiguity = rule;
      ProblemDraft draft = testing::random_pipeline(options, seed);
      draft.rules.max_replicas = most_replicas;
      draft.rules.replica_bandwidth = seed % 3 == 0 ? 0 : 5;
      const auto problem = problem_from(std::move(draft));
      if (!problem || !fits(*problem)) continue;
      SCOPED_TRACE(::testing::Message() << seed << " " << name_of(rule));
      ++served;
      expect_optimal(*problem, plan_with(*problem, "exhaustive"));
      if (::testing::Test::HasFailure()) return served;
    }
  }
  return served;
}

TEST(ExhaustiveAtLength, AgreesWithEnumerationUnderEachRule) {
  EXPECT_GT(agreements(300, 1), 600);
}

TEST(ExhaustiveAtLength, AgreesWithEnumerationOfReplicas) {
  EXPECT_GT(agreements(300, 2), 200);
}

TEST(ExhaustiveAtLength, AgreesWithEnumerationOfCalls) {
  for (const std::uint64_t seed : testing::random_cases(500)) {
    testing::RandomProblemOptions options;
    options.objective = Objective::call_latency;
    options.interconnect = InterconnectKind::host;
    options.ops = 5;
    options.devices = 3;
    options.binding_memory = seed % 4 != 0;
    options.unsupported = seed % 5 == 1;
    options.colocation = seed % 3 != 0;
    options.overheads = seed % 5 == 3;
    options.cuts = seed % 5 > 2;
    options.zero_times = seed % 2 == 0;
    ProblemDraft draft = testing::random_draft(options, 20'000 + seed);
    draft.rules.calls_per_device = 2;
    const auto problem = problem_from(std::move(draft));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    ASSERT_TRUE(fits(*problem));
    const std::optional<double> least = testing::brute_force_call_latency(*problem);
    const PlanOutcome outcome = plan_with(*problem, "exhaustive");
    ASSERT_EQ(outcome.fault, "");
    ASSERT_EQ(outcome.answer.status(), least ? Status::optimal : Status::infeasible);
    if (!least) continue;
    ASSERT_NEAR(outcome.value(), *least, 1e-9 * (1 + *least));
  }
}

}  // namespace
}  // namespace placewright
