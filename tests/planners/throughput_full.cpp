// The throughput family against enumeration on random graphs, and how optima change with the
// problem.

#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coarsen/dominance.h"
#include "formats/problem_file.h"
#include "planners/throughput_checks.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/random_cases.h"
#include "support/random_problem.h"
#include "support/throughput_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::drawn_options;
using testing::expect_optimal;
using testing::least_pipeline_value;
using testing::plan_with;
using testing::problem_from;
using testing::random_pipeline;
using testing::RandomPipelineOptions;
using testing::RandomSource;
using testing::registry;

TEST(IdealsAtLength, AgreeWithEnumeration) {
  for (const std::uint64_t seed : testing::random_cases()) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed, 8), seed));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals"));
    if (HasFailure()) return;
  }
}

TEST(IdealsAtLength, AgreeWithEnumerationOverStages) {
  for (const std::uint64_t seed : testing::random_cases(500)) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed, 8), seed));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals", 60, {{"wide-from", "1"}}));
    if (HasFailure()) return;
  }
}

TEST(IdealsAtLength, AgreeWithEnumerationOnTenOps) {
  for (const std::uint64_t seed : testing::random_cases(40)) {
    RandomPipelineOptions options = drawn_options(seed, 10);
    options.ops = 10;
    options.accelerators = 1 + seed % 3;
    options.cores = seed % 2;
    const auto problem = problem_from(random_pipeline(options, seed));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals"));
    if (HasFailure()) return;
  }
}

// The best value of a draft, infinite where nothing fits.
double optimum(ProblemDraft draft) {
  const auto problem = problem_from(std::move(draft));
  if (!problem) return kInfinity;
  const PlanOutcome outcome = plan_with(*problem, "ideals");
  EXPECT_TRUE(outcome.answer.status() == Status::optimal ||
              outcome.answer.status() == Status::infeasible)
      << outcome.answer.reason;
  return outcome.value();
}

TEST(IdealsAtLength, MoreNeverHurts) {
  for (const std::uint64_t seed : testing::random_cases(200)) {
    SCOPED_TRACE(seed);
    RandomPipelineOptions options = drawn_options(seed, 12);
    options.accelerators = std::max<std::size_t>(options.accelerators, 2);
    const ProblemDraft draft = random_pipeline(options, seed);
    if (!problem_from(draft)) continue;
    const double base = optimum(draft);

    ProblemDraft more = draft;
    Device copy = draft.cluster.devices[0];
    copy.name = "one more";
    more.cluster.devices.push_back(copy);
    EXPECT_LE(optimum(more), base * (1 + 1e-9));

    ProblemDraft roomy = draft;
    for (Device& device : roomy.cluster.devices) device.memory = kInfinity;
    EXPECT_LE(optimum(roomy), base * (1 + 1e-9));

    ProblemDraft closer = draft;
    for (Tensor& tensor : closer.tensors) tensor.host_time /= 2;
    EXPECT_LE(optimum(closer), base * (1 + 1e-9));

    ProblemDraft slower = draft;
    for (Op& op : slower.ops) {
      for (double& time : op.time) time *= 3;
    }
    for (Tensor& tensor : slower.tensors) tensor.host_time *= 3;
    for (Device& device : slower.cluster.devices) {
      device.send_overhead *= 3;
      device.receive_overhead *= 3;
    }
    for (Tensor& tensor : slower.tensors) {
      for (CutOverhead& cut : tensor.cuts) {
        cut.send *= 3;
        cut.receive *= 3;
      }
    }
    if (base < kInfinity) {
      EXPECT_NEAR(optimum(slower), 3 * base, 1e-8 * base);
    }
    if (HasFailure()) return;
  }
}

TEST(ConfigurationBoundAtLength, StaysBelowTheOptimum) {
  for (const std::uint64_t seed : testing::random_cases()) {
    RandomPipelineOptions options = drawn_options(seed, 8);
    options.contiguity = Contiguity::none;
    const auto problem = problem_from(random_pipeline(options, seed));
    if (!problem) continue;
    const std::optional<double> best = least_pipeline_value(*problem);
    if (!best) continue;
    SCOPED_TRACE(seed);
    const double excess = static_cast<double>(seed % 4) * 0.2;
    EXPECT_LE(testing::configuration_bound_of(*problem, *best * (1 + excess)), *best * (1 + 1e-9));
    if (HasFailure()) return;
  }
}

TEST(ProgramsAtLength, AgreeWithEnumerationUnderEachRule) {
  for (const std::uint64_t seed : testing::random_cases(250)) {
    for (const Contiguity rule : {Contiguity::none, Contiguity::per_device, Contiguity::joint}) {
      RandomPipelineOptions options = drawn_options(seed, 6);
      options.contiguity = rule;
      const auto problem = problem_from(random_pipeline(options, seed));
      if (!problem) break;
      SCOPED_TRACE(::testing::Message() << seed << " " << name_of(rule));
      const std::optional<double> best = least_pipeline_value(*problem);
      for (const std::string planner :
           {"cpsat", rule == Contiguity::none ? "ip" : "ip-contiguous"}) {
        const PlanOutcome outcome = plan_with(*problem, planner);
        EXPECT_EQ(outcome.fault, "");
        EXPECT_EQ(outcome.answer.plan.has_value(), best.has_value()) << outcome.answer.reason;
        if (!best || !outcome.answer.plan) continue;
        EXPECT_NEAR(outcome.value(), *best, 2e-6 * (1 + *best));
        EXPECT_LE(outcome.answer.certificate.lower_bound, *best * (1 + 1e-9));
      }
      if (HasFailure()) return;
    }
  }
}

// Each pair of devices has its own link, so that no two are alike.
TEST(ProgramsAtLength, AgreeWithBruteForceOnLinks) {
  for (const std::uint64_t seed : testing::random_cases(400)) {
    testing::RandomProblemOptions options;
    options.objective = Objective::throughput;
    options.ops = 3 + seed % 4;
    options.edge_probability = 0.3 + 0.1 * static_cast<double>(seed % 5);
    options.overheads = seed % 3 == 0;
    options.cuts = seed % 2 == 0;
    options.training = seed % 4 > 1;
    options.colocation = seed % 5 == 0;
    ProblemDraft draft = testing::random_draft(options, 70'000 + seed);
    draft.rules.contiguity = seed % 7 < 4 ? Contiguity::none : Contiguity::joint;
    draft.rules.training = seed / 3 % 2 == 0 ? TrainingMode::phased : TrainingMode::interleaved;
    draft.rules.transfers = seed / 4 % 3 == 0   ? TransferMode::sequential
                            : seed / 4 % 3 == 1 ? TransferMode::overlapped
                                                : TransferMode::duplex;
    const Problem problem(std::move(draft));
    SCOPED_TRACE(seed);
    const std::optional<double> best = testing::brute_force_value(problem);
    for (const PlannerEntry& entry : registry().entries()) {
      if (!entry.serves(Objective::throughput) || entry.strength != Strength::exact) continue;
      if (!entry.refusal(problem).empty()) continue;
      SCOPED_TRACE(entry.name);
      const PlanOutcome outcome = plan_with(problem, entry.name);
      EXPECT_EQ(outcome.fault, "");
      EXPECT_EQ(outcome.answer.plan.has_value(), best.has_value()) << outcome.answer.reason;
      if (!best || !outcome.answer.plan) continue;
      EXPECT_LE(outcome.answer.certificate.lower_bound, *best * (1 + 1e-9));
      EXPECT_GE(outcome.value(), *best * (1 - 1e-9));
      if (outcome.answer.status() == Status::optimal) {
        EXPECT_NEAR(outcome.value(), *best, 2e-6 * (1 + *best));
      }
    }
    if (HasFailure()) return;
  }
}

// Stopped at any step: the plan is valid and the bound is below the optimum.
TEST(IdealsAtLength, StoppedRunsTellTheTruth) {
  for (const std::uint64_t seed : testing::random_cases(300)) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed, 12), seed));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    const PlanOutcome whole = plan_with(*problem, "ideals");
    PlanRequest request;
    request.planner = "ideals";
    request.budget.steps = seed % 60;
    const PlanOutcome stopped = make_plan(*problem, registry(), request);
    EXPECT_EQ(stopped.fault, "");
    if (whole.answer.plan) {
      EXPECT_LE(stopped.answer.certificate.lower_bound, whole.value() * (1 + 1e-9));
    } else {
      EXPECT_FALSE(stopped.answer.plan);
    }
    if (stopped.answer.plan) {
      EXPECT_TRUE(verify(*problem, *stopped.answer.plan).empty());
      EXPECT_GE(stopped.value(), whole.value() * (1 - 1e-9));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace placewright
