// The throughput family against enumeration and the published values.

#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "coarsen/dominance.h"
#include "formats/problem_file.h"
#include "planners/throughput_checks.h"
#include "planning/service.h"
#include "support/locations.h"
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

TEST(Ideals, AgreeWithEnumeration) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed, 7), seed));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals"));
    if (HasFailure()) return;
  }
}

TEST(Ideals, ReplicateStagesAsEnumerationDoes) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    ProblemDraft draft = random_pipeline(drawn_options(seed, 5), seed);
    draft.rules.max_replicas = static_cast<int>(2 + seed % 2);
    draft.rules.replica_bandwidth = seed % 3 == 0 ? 0 : 5;
    draft.shared_weights.clear();
    // Link times and overheads of a replicated stage are those of its first device.
    for (Device& device : draft.cluster.devices) device.send_overhead = device.receive_overhead = 0;
    const auto problem = problem_from(std::move(draft));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals"));
    if (HasFailure()) return;
  }
}

TEST(Ideals, HandWideGraphsToTheProgramOverStages) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed + 3000, 6), seed + 3000));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals", 60, {{"wide-from", "1"}}));
    if (HasFailure()) return;
  }
}

// Two million ideals. A presolve step of CP-SAT 9.15 lost this optimum and proved 5.583.
TEST(Ideals, ProveAWideGraph) {
  GenerateOptions options;
  options.objective = Objective::throughput;
  options.ops = 60;
  options.layers = 12;
  options.accelerators = 4;
  options.cores = 1;
  const Problem problem(generate(options));
  const PlanOutcome outcome = plan_with(problem, "ideals");
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
  EXPECT_NEAR(outcome.value(), 5.530912, 1e-6);
}

// Below the best plan, and for a good part of the problems equal to it.
TEST(ConfigurationBound, StaysBelowTheOptimum) {
  int tight = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    RandomPipelineOptions options = drawn_options(seed + 7000, 7);
    options.contiguity = Contiguity::none;
    const auto problem = problem_from(random_pipeline(options, seed + 7000));
    if (!problem) continue;
    const std::optional<double> best = least_pipeline_value(*problem);
    if (!best) continue;
    SCOPED_TRACE(seed);
    const double bound = testing::configuration_bound_of(*problem, *best * 1.5 + 1);
    EXPECT_LE(bound, *best * (1 + 1e-9));
    if (bound > *best * (1 - 1e-3)) ++tight;
    if (HasFailure()) return;
  }
  EXPECT_GT(tight, 30);
}

TEST(Dominance, KeepsTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomPipelineOptions options = drawn_options(seed + 5000, 7);
    ProblemDraft draft = random_pipeline(options, seed + 5000);
    RandomSource random(seed);
    for (Op& op : draft.ops) {
      if (!random.chance(0.5)) continue;
      for (double& time : op.time) time = 0;
      if (random.chance(0.7)) op.memory = 0;
    }
    for (Tensor& tensor : draft.tensors) {
      if (random.chance(0.3)) tensor.host_time = 0;
      if (random.chance(0.3)) tensor.host_time = 1;
    }
    const auto problem = problem_from(std::move(draft));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_optimal(*problem, plan_with(*problem, "ideals"));
    if (HasFailure()) return;
  }
}

// The integer programs know every rule; values may be off by the solver's tolerance.
void expect_program_optimal(const Problem& problem, const std::string& planner) {
  const std::optional<double> best = least_pipeline_value(problem);
  const PlanOutcome outcome = plan_with(problem, planner);
  EXPECT_EQ(outcome.fault, "");
  if (!best) {
    EXPECT_FALSE(outcome.answer.plan);
    EXPECT_EQ(outcome.answer.status(), Status::infeasible) << outcome.answer.reason;
    return;
  }
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_NEAR(outcome.value(), *best, 2e-6 * (1 + *best));
  EXPECT_LE(outcome.answer.certificate.lower_bound, *best * (1 + 1e-9));
  EXPECT_GE(outcome.answer.certificate.lower_bound, *best * (1 - 2e-6) - 1e-9);
}

TEST(Programs, AgreeWithEnumerationUnderEachRule) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    double previous = 0;
    for (const Contiguity rule : {Contiguity::none, Contiguity::per_device, Contiguity::joint}) {
      RandomPipelineOptions options = drawn_options(seed + 900, 5);
      options.contiguity = rule;
      const auto problem = problem_from(random_pipeline(options, seed + 900));
      if (!problem) break;
      SCOPED_TRACE(::testing::Message() << seed << " " << name_of(rule));
      expect_program_optimal(*problem, "cpsat");
      expect_program_optimal(*problem, rule == Contiguity::none ? "ip" : "ip-contiguous");
      // Each rule allows less than the one before.
      const double best = least_pipeline_value(*problem).value_or(kInfinity);
      EXPECT_GE(best, previous);
      previous = best;
      if (HasFailure()) return;
    }
  }
}

TEST(Refine, AgreesWithEnumeration) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    RandomPipelineOptions options = drawn_options(seed + 8000, 7);
    options.contiguity = Contiguity::none;
    const auto problem = problem_from(random_pipeline(options, seed + 8000));
    if (!problem) continue;
    SCOPED_TRACE(seed);
    expect_program_optimal(*problem, "refine");
    if (HasFailure()) return;
  }
}

struct Published {
  const char* file;
  double optimum;
};

constexpr Published kPublished[] = {
    {"LayerGraphs/bert24_inference", 17.7899},      {"LayerGraphs/bert24_training", 41.7458},
    {"LayerGraphs/resnet50_inference", 33.7747},    {"LayerGraphs/gnmt_inference", 32.9107},
    {"LayerGraphs/gnmt_training", 107.0044},        {"OperatorGraphs/resnet50_inference", 124.3488},
    {"OperatorGraphs/bert_l-3_inference", 27.9186}, {"OperatorGraphs/bert_l-3_training", 65.3031}};

Problem published(const std::string& file, Contiguity contiguity = Contiguity::joint) {
  ReadOptions options;
  auto read =
      read_problem(testing::source_path("examples/msr/throughput/") + file + ".json", options);
  read.draft.rules.contiguity = contiguity;
  return build_problem(read);
}

TEST(Ideals, ReachPublishedOptima) {
  for (const Published& input : kPublished) {
    SCOPED_TRACE(input.file);
    const Problem problem = published(input.file);
    const PlanOutcome outcome = plan_with(problem, "ideals");
    EXPECT_EQ(outcome.answer.status(), Status::optimal);
    EXPECT_NEAR(outcome.value(), input.optimum, 1e-4 * input.optimum);
  }
}

// The contiguous optimum is 17.7899.
TEST(Refine, ProvesAPublishedInput) {
  const PlanOutcome outcome =
      plan_with(published("LayerGraphs/bert24_inference", Contiguity::none), "refine", 20);
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
  EXPECT_NEAR(outcome.value(), 17.714719, 1e-5);
}

// A chain has one order. Where transfers cost nothing the furthest end of a stage is the best one,
// and the program over numbers of devices has the optimum, up to the precision of its bisection.
TEST(Kinds, HaveTheOptimumOfChains) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    GenerateOptions options;
    options.family = GraphFamily::chain;
    options.objective = Objective::throughput;
    options.seed = seed;
    options.ops = 40;
    options.accelerators = 2 + seed % 3;
    options.cores = seed % 4;
    options.communication = 0;
    options.memory_pressure = seed % 2 == 0 ? 0.7 : 0;
    const Problem problem(generate(options));
    SCOPED_TRACE(seed);
    const PlanOutcome exact = plan_with(problem, "ideals");
    const PlanOutcome found = plan_with(problem, "kinds");
    ASSERT_EQ(exact.answer.status(), Status::optimal);
    ASSERT_TRUE(found.answer.plan) << found.answer.reason;
    EXPECT_LE(found.value(), exact.value() * 1.001);
  }
}

// No device is busier than another, and the last one may have no stage.
TEST(Kinds, PlanOpsThatTakeNoTime) {
  GenerateOptions options;
  options.family = GraphFamily::chain;
  options.objective = Objective::throughput;
  options.ops = 6;
  options.accelerators = 3;
  options.communication = 0;
  ProblemDraft draft = generate(options);
  for (Op& op : draft.ops) std::ranges::fill(op.time, 0.0);
  const PlanOutcome found = plan_with(Problem(std::move(draft)), "kinds");
  ASSERT_TRUE(found.answer.plan) << found.answer.reason;
  EXPECT_EQ(found.value(), 0);
}

// Contiguous stages on three kinds cannot give every op its best kind, and the bound knows it.
TEST(Kinds, ComeNearTheBoundOnTransformersWithManyDevices) {
  GenerateOptions options;
  options.family = GraphFamily::transformer;
  options.objective = Objective::throughput;
  options.ops = 4000;
  options.devices = 12;
  const Problem problem(generate(options));
  const PlanOutcome found = plan_with(problem, "kinds", 60);
  ASSERT_TRUE(found.answer.plan) << found.answer.reason;
  EXPECT_EQ(found.answer.certificate.method, "work of contiguous segments");
  EXPECT_LT(found.answer.gap(), 0.05);
}

TEST(PlacementPrograms, AreNotBegunWhereMemoryIsTooSmall) {
  const Problem problem = published("LayerGraphs/bert24_inference", Contiguity::none);
  PlanRequest request{.planner = "ip", .options = {{"warm-start", "off"}}};
  request.budget.memory = 1e5;
  const PlanOutcome outcome = make_plan(problem, registry(), request);
  EXPECT_EQ(outcome.answer.status(), Status::unknown);
  EXPECT_NE(outcome.answer.reason.find("was not begun"), std::string::npos)
      << outcome.answer.reason;
}

}  // namespace
}  // namespace placewright
