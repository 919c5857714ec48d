// The planners that serve every objective, and `auto`, on every published input under every
// objective that it can have.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "planning/portfolio.h"
#include "planning/service.h"
#include "support/published.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

constexpr Objective kObjectives[] = {Objective::throughput, Objective::call_latency,
                                     Objective::latency, Objective::total_completion};

std::vector<std::string> published_inputs() {
  std::vector<std::string> names;
  const std::filesystem::path root = testing::example_path("");
  for (const char* folder : {"moirai", "msr/throughput", "msr/latency", "talos"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".json") continue;
      names.push_back(std::filesystem::relative(entry.path(), root).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Published : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Inputs, Published, ::testing::ValuesIn(published_inputs()),
                         [](const auto& input) {
                           std::string name = input.param;
                           for (char& letter : name) {
                             if (std::isalnum(static_cast<unsigned char>(letter)) == 0)
                               letter = '_';
                           }
                           return name;
                         });

TEST_P(Published, IsPlannedUnderEveryObjectiveByThePlannersForAll) {
  const Registry registry = planning_registry();
  for (const Objective objective : kObjectives) {
    SCOPED_TRACE(name_of(objective));
    const ProblemFile file = testing::published_file(GetParam(), objective);
    if (objective == Objective::call_latency &&
        file.draft.cluster.interconnect != InterconnectKind::host) {
      EXPECT_THROW(build_problem(file), InputError);
      continue;
    }
    const Problem problem = build_problem(file);
    std::size_t plans = 0;
    for (const char* planner :
         {"single", "random", "topo", "memory-first", "proportional", "auto"}) {
      PlanRequest request;
      request.planner = planner;
      request.budget.seconds = 2;
      if (request.planner == "random") request.options = {{"samples", "5"}};
      const PlanOutcome outcome = make_plan(problem, registry, request);
      EXPECT_EQ(outcome.fault, "") << planner;
      if (!outcome.answer.plan) {
        EXPECT_NE(outcome.answer.reason, "") << planner;
        EXPECT_STRNE(planner, "auto") << outcome.answer.reason;
        continue;
      }
      ++plans;
      EXPECT_TRUE(verify(problem, *outcome.answer.plan).empty()) << planner;
      EXPECT_LE(outcome.answer.certificate.lower_bound, outcome.value()) << planner;
    }
    // example-1 fills memory exactly: contiguous stages are found by search only.
    EXPECT_GE(plans, 1U);
  }
}

TEST(Objectives, AreServedAsTheRegistrySays) {
  const Registry registry = planning_registry();
  for (const Objective objective : kObjectives) {
    for (const char* planner :
         {"single", "random", "topo", "memory-first", "proportional", "auto"}) {
      const PlannerEntry* entry = registry.find(planner, objective);
      ASSERT_NE(entry, nullptr) << planner;
      EXPECT_TRUE(entry->serves(objective)) << planner;
    }
    for (const char* planner : {"heft", "etf"}) {
      const PlannerEntry* entry = registry.find(planner, objective);
      ASSERT_NE(entry, nullptr) << planner;
      EXPECT_EQ(entry->serves(objective), is_schedule(objective)) << planner;
    }
  }
}

}  // namespace
}  // namespace placewright
