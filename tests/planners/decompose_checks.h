// `decompose` against brute force on small random problems of all kinds.

#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/cut_problem.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

inline RandomProblemOptions options_for(std::uint64_t seed) {
  RandomProblemOptions options;
  options.ops = 5 + seed % 3;
  options.devices = 2 + seed / 3 % 2;
  options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
  options.congestion = seed / 2 % 2 == 0;
  options.edge_probability = 0.2 + 0.1 * static_cast<double>(seed / 4 % 5);
  options.zero_times = seed / 5 % 3 == 0;
  options.unsupported = seed / 7 % 4 == 0;
  options.pins = seed / 11 % 4 == 0;
  options.lanes = seed / 13 % 4 == 0;
  options.colocation = seed / 17 % 4 == 0;
  options.binding_memory = seed / 19 % 4 == 0;
  options.missing_links = seed / 23 % 4 == 0 && options.interconnect == InterconnectKind::links;
  options.overheads = seed / 29 % 6 == 0;
  options.shared_weights = seed / 31 % 6 == 0;
  options.models = seed / 37 % 6 == 0 ? 2 : 1;
  options.cuts = seed / 41 % 6 == 1;
  return options;
}

inline void expect_decompose_agrees(std::uint64_t seed) {
  SCOPED_TRACE(seed);
  const RandomProblemOptions options = options_for(seed);
  ProblemDraft draft = options.models == 1 && seed % 5 != 0
                           ? with_cut_node(options, seed, seed % 3 == 0 ? 0.15 : 0)
                           : random_draft(options, seed);
  const Problem problem(std::move(draft));
  static const Registry registry = planning_registry();
  PlanRequest request;
  request.planner = "decompose";
  request.budget = Budget{.seconds = 60, .threads = 1 + static_cast<int>(seed % 2)};
  const PlanOutcome outcome = make_plan(problem, registry, request);
  EXPECT_EQ(outcome.fault, "");
  const std::optional<double> truth = brute_force_value(problem);
  if (!truth) {
    EXPECT_FALSE(outcome.answer.plan);
    return;
  }
  EXPECT_FALSE(outcome.answer.proved_infeasible);
  EXPECT_LE(outcome.answer.certificate.lower_bound, *truth * (1 + 1e-9));
  const bool exact =
      !problem.has_overheads() && !(options.shared_weights && options.binding_memory);
  if (!exact) return;
  ASSERT_TRUE(outcome.answer.plan) << outcome.answer.reason;
  EXPECT_EQ(outcome.answer.status(), Status::optimal);
  EXPECT_NEAR(outcome.value(), *truth, 1e-6 * *truth + 1e-12);
}

}  // namespace placewright::testing
