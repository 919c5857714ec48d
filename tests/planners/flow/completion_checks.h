// What the planners for several models must do, on random problems against brute force.

#pragma once

#include <string>

#include <gtest/gtest.h>

#include "bounds/bounds.h"
#include "planners/flow/flow.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

inline const Registry& all_planners() {
  static const Registry registry = planning_registry();
  return registry;
}

inline PlanOutcome completion_outcome(const Problem& problem, const std::string& planner,
                                      bool published = false) {
  PlanRequest request;
  request.planner = planner;
  request.budget.seconds = 60;
  if (published) request.options = {{"refine", "none"}};
  return make_plan(problem, all_planners(), request);
}

// Several small models, with everything that the label search takes and, at times, what it leaves
// to CP-SAT.
inline RandomProblemOptions several_models(std::uint64_t seed) {
  RandomProblemOptions options;
  options.objective = Objective::total_completion;
  options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.ops = 4 + seed % 3;
  options.devices = 2;
  options.models = 1 + seed % 3;
  options.congestion = seed % 8 == 7;
  options.lanes = seed % 5 == 1;
  options.zero_times = seed % 7 == 2;
  options.unsupported = seed % 6 == 3;
  options.pins = seed % 11 == 4;
  return options;
}

inline void expect_exact_and_bounded(std::uint64_t seed) {
  const Problem problem(random_draft(several_models(seed), seed));
  SCOPED_TRACE(problem.name() + " seed " + std::to_string(seed));
  const std::optional<double> best = brute_force_value(problem);
  ASSERT_TRUE(best);
  const double slack = 1e-6 * (1 + *best);
  EXPECT_LE(best_lower_bound(problem).lower_bound, *best + slack);
  const PlanOutcome exact = completion_outcome(problem, "toct-exact");
  ASSERT_TRUE(exact.answer.plan) << exact.answer.reason;
  EXPECT_NEAR(exact.value(), *best, slack);
  EXPECT_EQ(exact.answer.status(), Status::optimal);
  for (const char* planner : {"aswm", "tsam", "talos"}) {
    const PlanOutcome outcome = completion_outcome(problem, planner);
    ASSERT_TRUE(outcome.answer.plan) << planner << ": " << outcome.answer.reason;
    EXPECT_GE(outcome.value(), *best - slack) << planner;
    EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty()) << planner;
  }
}

}  // namespace placewright::testing
