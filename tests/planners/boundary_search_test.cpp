// The search over boundaries and the annealing of stages, against enumeration.

#include "planners/methods/boundary_search.h"

#include <optional>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "planners/methods/contiguous_search.h"
#include "planners/methods/stage_annealing.h"
#include "planners/throughput_checks.h"

namespace placewright {
namespace {

using testing::drawn_options;
using testing::least_pipeline_value;
using testing::plan_with;
using testing::problem_from;
using testing::random_pipeline;
using testing::RandomPipelineOptions;

// Devices that are alike, transfers one after the other; everything else as drawn.
std::optional<Problem> pipeline_on_like_devices(std::uint64_t seed) {
  RandomPipelineOptions options = drawn_options(seed, 8);
  options.cores = 0;
  ProblemDraft draft = random_pipeline(options, seed);
  draft.rules.transfers = TransferMode::sequential;
  draft.rules.training = TrainingMode::interleaved;
  for (Device& device : draft.cluster.devices) {
    const std::string name = device.name;
    device = draft.cluster.devices.front();
    device.name = name;
  }
  for (Op& op : draft.ops) op.pinned_to = DeviceId{};
  return problem_from(std::move(draft));
}

TEST(BoundarySearch, FindsASplitExactlyFromTheOptimumOn) {
  int served = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const auto problem = pipeline_on_like_devices(seed);
    if (!problem) continue;
    const throughput::StageModel model = throughput::contiguous_model(*problem);
    if (!throughput::refuses_boundary_search(model).empty()) continue;
    SCOPED_TRACE(seed);
    ++served;
    Control control("boundaries", Budget{.seconds = 600});
    const std::optional<double> best = least_pipeline_value(*problem);
    if (!best) {
      const auto none = throughput::split_within(model, throughput::highest_cutoff(model), control);
      EXPECT_TRUE(none.complete);
      EXPECT_FALSE(none.split);
    } else if (*best > 0) {
      const auto below = throughput::split_within(model, *best * (1 - 1e-6), control);
      EXPECT_TRUE(below.complete);
      EXPECT_FALSE(below.split);
      const auto at = throughput::split_within(model, *best * (1 + 1e-6), control);
      ASSERT_TRUE(at.split);
      const std::optional<Plan> plan = throughput::plan_of_split(model, *at.split);
      ASSERT_TRUE(plan);
      EXPECT_TRUE(verify(*problem, *plan).empty());
      EXPECT_LE(plan->value, *best * (1 + 2e-6));
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(served, 1000);
}

TEST(StageAnnealing, GivesValidPlansUnderEveryRuleAndMostlyTheBest) {
  int asked = 0;
  int best_found = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const auto problem = problem_from(random_pipeline(drawn_options(seed + 900, 8), seed + 900));
    if (!problem) continue;
    const auto start = plan_with(*problem, "ideals-linear", 60, {{"random-orders", "0"}});
    if (!start.answer.plan) continue;
    SCOPED_TRACE(seed);
    const throughput::StageModel model = throughput::contiguous_model(*problem);
    Control control("annealing", Budget{.seconds = 600});
    const auto better = throughput::anneal_stages(model, *start.answer.plan, 5'000, control);
    double value = start.value();
    if (better) {
      EXPECT_TRUE(verify(*problem, *better).empty());
      EXPECT_LT(better->value, value);
      value = better->value;
    }
    ++asked;
    if (value <= *least_pipeline_value(*problem) * (1 + 1e-9)) ++best_found;
    if (HasFailure()) return;
  }
  EXPECT_GT(asked, 50);
  EXPECT_GT(best_found * 10, asked * 8);
}

// Its ideals within the windows are too many to list, and CP-SAT does not raise the bound.
TEST(BoundarySearch, RaisesTheBoundOfAWideGraph) {
  GenerateOptions options;
  options.objective = Objective::throughput;
  options.ops = 100;
  options.accelerators = 6;
  const Problem problem(generate(options));
  const throughput::StageModel model = throughput::contiguous_model(problem);
  Control control("boundaries", Budget{.seconds = 600});
  const auto result = throughput::split_within(model, model.work_bound() * 1.02, control);
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.split);
}

}  // namespace
}  // namespace placewright
