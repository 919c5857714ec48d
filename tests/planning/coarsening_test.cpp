// `--coarsen` through the service: coarsen, plan, expand, verify.

#include "coarsen/coarsening.h"

#include <gtest/gtest.h>

#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/brute_force.h"
#include "support/published.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::brute_force_value;
using testing::random_draft;
using testing::RandomProblemOptions;

PlanRequest request_for(const std::string& planner, CoarsenMethod method) {
  PlanRequest request;
  request.planner = planner;
  request.budget = Budget{.seconds = 20, .steps = 50, .threads = 1, .seed = 5};
  request.coarsening.method = method;
  return request;
}

TEST(CoarsenedPlanning, PlansAreValidAndBoundsStayTrue) {
  const Registry registry = planning_registry();
  std::size_t coarser = 0;
  for (const Objective objective :
       {Objective::latency, Objective::total_completion, Objective::throughput}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      RandomProblemOptions options;
      options.objective = objective;
      options.interconnect = seed % 2 == 0 ? InterconnectKind::host : InterconnectKind::links;
      options.ops = 6;
      options.devices = 2;
      options.edge_probability = 0.25;
      options.colocation = seed % 3 != 0;
      options.binding_memory = seed % 4 == 0;
      options.training = objective == Objective::throughput && seed % 4 == 1;
      const Problem problem(random_draft(options, seed));
      const std::optional<double> best = brute_force_value(problem);
      for (const CoarsenMethod method : values_of<CoarsenMethod>()) {
        const PlanOutcome outcome = make_plan(problem, registry, request_for("auto", method));
        EXPECT_EQ(outcome.fault, "") << name_of(method) << ", seed " << seed;
        EXPECT_EQ(outcome.coarsening.has_value(), method != CoarsenMethod::none);
        if (outcome.coarsening && outcome.coarsening->ops_after < outcome.coarsening->ops_before) {
          ++coarser;
        }
        EXPECT_FALSE(outcome.answer.proved_infeasible && best);
        if (!outcome.answer.plan || !best) continue;
        EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty());
        EXPECT_GE(outcome.value(), *best * (1 - 1e-9));
        EXPECT_LE(outcome.answer.certificate.lower_bound, *best * (1 + 1e-9));
      }
    }
  }
  EXPECT_GT(coarser, 30U);
}

TEST(CoarsenedPlanning, TheCertificateSaysWhereItIsFrom) {
  const Problem problem = testing::published_problem("moirai/GoogLeNet.json", Objective::latency);
  const PlanOutcome outcome =
      make_plan(problem, planning_registry(), request_for("heft", CoarsenMethod::chains));
  ASSERT_TRUE(outcome.answer.plan);
  ASSERT_TRUE(outcome.coarsening);
  EXPECT_FALSE(outcome.coarsening->lossless);
  EXPECT_NE(outcome.answer.certificate.method.find("before coarsening"), std::string::npos);
}

TEST(CoarsenedPlanning, ComparisonUsesTheCoarseProblemForAll) {
  const Problem problem = testing::published_problem("moirai/GoogLeNet.json", Objective::latency);
  PlanRequest request = request_for("", CoarsenMethod::chains);
  const Comparison comparison = compare(problem, planning_registry(), {"heft", "etf"}, request);
  ASSERT_EQ(comparison.outcomes.size(), 2U);
  for (const PlanOutcome& outcome : comparison.outcomes) {
    ASSERT_TRUE(outcome.answer.plan);
    EXPECT_EQ(outcome.coarsening->ops_before, problem.op_count());
    EXPECT_EQ(outcome.answer.plan->placement.size(), problem.op_count());
  }
}

}  // namespace
}  // namespace placewright
