#include <gtest/gtest.h>

#include "support/exact_cases.h"
#include "planners/latency/latency.h"
#include "support/brute_force.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

using testing::brute_force_value;
using testing::exact_case;
using testing::random_draft;

Answer solve(const Problem& problem) {
  const PlannerEntry entry = cpsat_schedule();
  Control control(entry.name, Budget{.seconds = 20});
  return entry.plan(problem, Settings{entry.options}, control);
}

TEST(CpsatSchedule, AgreesWithBruteForce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem(random_draft(exact_case(seed), 1000 + seed));
    SCOPED_TRACE(seed);
    const std::optional<double> least = brute_force_value(problem);
    const Answer answer = solve(problem);
    ASSERT_EQ(answer.plan.has_value(), least.has_value()) << answer.reason;
    if (!least) {
      EXPECT_TRUE(answer.proved_infeasible);
      continue;
    }
    EXPECT_TRUE(verify(problem, *answer.plan).empty());
    EXPECT_NEAR(answer.value(), *least, 1e-6 * *least);
    EXPECT_LE(answer.certificate.lower_bound, *least * (1 + 1e-9));
    EXPECT_EQ(answer.status(), Status::optimal);
  }
}

}  // namespace
}  // namespace placewright
