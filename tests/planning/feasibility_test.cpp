#include "planning/feasibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planning/portfolio.h"
#include "planning/service.h"
#include "planning/sizes.h"
#include "planning/suggestion.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

using ::testing::HasSubstr;

ProblemDraft two_ops() {
  ProblemDraft draft;
  draft.name = "two";
  draft.cluster.kinds = {{.name = "k0"}, {.name = "k1"}};
  draft.cluster.devices = {{.name = "d0", .kind = KindId{0}, .memory = 10},
                           {.name = "d1", .kind = KindId{1}, .memory = 20}};
  draft.models = {{.name = "m"}};
  draft.ops = {{.name = "a", .memory = 1, .time = {1, 1}},
               {.name = "b", .memory = 1, .time = {1, 1}}};
  return draft;
}

TEST(Feasibility, NothingIsProvedWhereEverythingFits) {
  EXPECT_FALSE(proof_of_infeasibility(Problem(two_ops())));
}

TEST(Feasibility, FullMemoryIsNotTooMuch) {
  ProblemDraft draft = two_ops();
  draft.ops[0].memory = 10;
  draft.ops[1].memory = 20;
  EXPECT_FALSE(proof_of_infeasibility(Problem(std::move(draft))));
}

TEST(Feasibility, TheSumIsToldWithWhatIsThere) {
  ProblemDraft draft = two_ops();
  draft.ops[0].memory = 16;
  draft.ops[1].memory = 16;
  const auto proof = proof_of_infeasibility(Problem(std::move(draft)));
  ASSERT_TRUE(proof);
  EXPECT_THAT(*proof, HasSubstr("32 bytes"));
  EXPECT_THAT(*proof, HasSubstr("30 bytes"));
}

TEST(Feasibility, AnOpMayBeTooBigForTheDevicesThatSupportIt) {
  ProblemDraft draft = two_ops();
  draft.ops[0].memory = 15;
  draft.ops[0].time = {1, kUnsupported};
  const auto proof = proof_of_infeasibility(Problem(std::move(draft)));
  ASSERT_TRUE(proof);
  EXPECT_THAT(*proof, HasSubstr("op 'a' needs 15 bytes"));
  EXPECT_THAT(*proof, HasSubstr("10 bytes"));
}

TEST(Feasibility, AGroupMayHaveNoCommonDevice) {
  ProblemDraft draft = two_ops();
  draft.ops[0].time = {1, kUnsupported};
  draft.ops[1].time = {kUnsupported, 1};
  draft.colocated = {{OpId{0}, OpId{1}}};
  const auto proof = proof_of_infeasibility(Problem(std::move(draft)));
  ASSERT_TRUE(proof);
  EXPECT_THAT(*proof, HasSubstr("'a' and 'b'"));
}

ProblemDraft two_ops_in_one_memory(double memory) {
  ProblemDraft draft = two_ops();
  draft.cluster.spaces = {{.name = "ram", .memory = memory}};
  for (Device& device : draft.cluster.devices) {
    device.memory = kInfinity;
    device.space = SpaceId{0};
  }
  return draft;
}

TEST(Feasibility, AMemoryThatDevicesShareCountsOnce) {
  ProblemDraft draft = two_ops_in_one_memory(20);
  draft.ops[0].memory = draft.ops[1].memory = 16;
  const Problem problem(draft);
  EXPECT_EQ(memory_available(problem), 20);
  const auto proof = proof_of_infeasibility(problem);
  ASSERT_TRUE(proof);
  EXPECT_THAT(*proof, HasSubstr("32 bytes"));
  EXPECT_THAT(*proof, HasSubstr("20 bytes"));
  draft.ops[0].memory = 21;
  const auto by_op = proof_of_infeasibility(Problem(std::move(draft)));
  ASSERT_TRUE(by_op);
  EXPECT_THAT(*by_op, HasSubstr("op 'a' needs 21 bytes"));
  EXPECT_FALSE(proof_of_infeasibility(Problem(two_ops_in_one_memory(2))));
}

TEST(Feasibility, SharedWeightsCountOnce) {
  ProblemDraft draft = two_ops();
  draft.colocated = {{OpId{0}, OpId{1}}};
  draft.shared_weights = {{.name = "w", .bytes = 18, .ops = {OpId{0}, OpId{1}}}};
  EXPECT_FALSE(proof_of_infeasibility(Problem(std::move(draft))));
}

// Whenever some planner finds a plan, nothing may have been proved.
TEST(Feasibility, ProofsAreNeverContradictedByPlans) {
  std::size_t plans = 0;
  const Registry registry = planning_registry();
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    testing::RandomProblemOptions options;
    options.ops = 6;
    options.binding_memory = true;
    options.colocation = seed % 2 == 0;
    options.shared_weights = seed % 3 == 0;
    options.unsupported = seed % 4 == 0;
    const Problem problem(testing::random_draft(options, seed));
    Control control("test", Budget{.seconds = 5, .steps = 50});
    for (const PlannerEntry* entry : registry.fitting(problem)) {
      const Answer answer = entry->plan(problem, Settings{entry->options}, control);
      if (!answer.plan) continue;
      ++plans;
      EXPECT_FALSE(proof_of_infeasibility(problem)) << seed << " " << entry->name;
    }
  }
  EXPECT_GT(plans, 50U);
}

TEST(Sizes, AreReadable) {
  EXPECT_EQ(size_text(1), "1 byte");
  EXPECT_EQ(size_text(44), "44 bytes");
  EXPECT_EQ(size_text(1536.0 * 1024 * 1024), "1.50 GiB");
  EXPECT_EQ(size_text(kInfinity), "unlimited");
}

TEST(Suggestion, FindsTheClosestName) {
  const std::vector<std::string> names = {"heft", "etf", "memory-first", "auto"};
  EXPECT_EQ(closest_name("hefd", names), "heft");
  EXPECT_EQ(closest_name("memoryfirst", names), "memory-first");
  EXPECT_EQ(closest_name("atuo", names), "auto");
  EXPECT_EQ(closest_name("gurobi", names), "");
  EXPECT_EQ(closest_name("x", names), "");
  EXPECT_EQ(did_you_mean("nothing", names), "");
}

}  // namespace
}  // namespace placewright
