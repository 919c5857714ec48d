// What the tests of the throughput family share: drawing problems, planning them, comparing with
// enumeration.

#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "planners/methods/placement_program.h"
#include "planners/throughput/configuration_bound.h"
#include "planning/service.h"
#include "support/planner_case.h"
#include "support/random_problem.h"
#include "support/throughput_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

inline PlanOutcome plan_with(const Problem& problem, const std::string& planner,
                             double seconds = 60,
                             std::vector<std::pair<std::string, std::string>> options = {}) {
  PlanRequest request;
  request.planner = planner;
  request.options = std::move(options);
  request.budget.seconds = seconds;
  return make_plan(problem, registry(), request);
}

// A problem, or nothing where the draw contradicts itself (an op that no device runs).
inline std::optional<Problem> problem_from(ProblemDraft draft) {
  try {
    return Problem(std::move(draft));
  } catch (const InvalidProblem&) {
    return std::nullopt;
  }
}

// For a problem with a plan of value `highest` or less.
inline double configuration_bound_of(const Problem& problem, double highest,
                                     std::size_t most_states = 64) {
  const throughput::StageModel model(problem, throughput::program_blocks(problem));
  Control control("bound", Budget{.seconds = 10});
  return throughput::configuration_bound(model, 0, highest, control, most_states);
}

inline RandomPipelineOptions drawn_options(std::uint64_t seed, std::size_t most_ops) {
  RandomSource random(seed);
  RandomPipelineOptions options;
  options.ops = random.between(3, most_ops);
  options.accelerators = random.between(1, 4);
  options.cores = random.below(4);
  return options;
}

inline void expect_optimal(const Problem& problem, const PlanOutcome& outcome) {
  const std::optional<double> best = least_pipeline_value(problem);
  EXPECT_EQ(outcome.fault, "");
  if (!best) {
    EXPECT_EQ(outcome.answer.status(), Status::infeasible) << outcome.answer.reason;
    return;
  }
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
  EXPECT_NEAR(outcome.value(), *best, 1e-9 * (1 + *best));
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
}

}  // namespace placewright::testing
