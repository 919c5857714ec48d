#include <gtest/gtest.h>

#include "formats/problem_file.h"
#include "planners/decompose_checks.h"
#include "support/locations.h"
#include "support/random_cases.h"

namespace placewright {
namespace {

TEST(DecomposeAtLength, AgreesWithBruteForce) {
  for (const std::uint64_t seed : testing::random_cases()) testing::expect_decompose_agrees(seed);
}

// Proven optima of the published inputs.
TEST(DecomposeAtLength, ProvesPublishedInputs) {
  struct Known {
    const char* file;
    bool congestion;
    double value;
  };
  const Registry registry = planning_registry();
  for (const Known& known :
       {Known{"example-1.json", false, 30}, Known{"example-1.json", true, 30},
        Known{"GoogLeNet.json", false, 1.24132}, Known{"GoogLeNet.json", true, 1.27811},
        Known{"inceptionv4.json", false, 9.71169}}) {
    SCOPED_TRACE(known.file);
    ProblemFile file = read_problem(testing::source_path("examples/moirai/") + known.file);
    file.draft.rules.congestion = known.congestion;
    const Problem problem(std::move(file.draft));
    PlanRequest request;
    request.planner = "decompose";
    request.budget = Budget{.seconds = 300, .threads = 2};
    const PlanOutcome outcome = make_plan(problem, registry, request);
    EXPECT_EQ(outcome.answer.status(), Status::optimal);
    EXPECT_NEAR(outcome.value(), known.value, 1e-5);
  }
}

}  // namespace
}  // namespace placewright
