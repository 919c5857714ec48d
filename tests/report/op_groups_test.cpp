#include "report/op_groups.h"

#include <set>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/placement_plan.h"
#include "support/published.h"
#include "support/random_plan.h"
#include "support/random_problem.h"

namespace placewright {
namespace {

void expect_partition(const Problem& problem, const Grouping& grouping) {
  std::set<OpId> seen;
  for (std::size_t group = 0; group < grouping.groups.size(); ++group) {
    EXPECT_FALSE(grouping.groups[group].ops.empty());
    for (const OpId op : grouping.groups[group].ops) {
      EXPECT_TRUE(seen.insert(op).second);
      EXPECT_EQ(grouping.group_of[op], group);
      EXPECT_LE(grouping.centre[op].x, grouping.groups[group].width);
      EXPECT_LE(grouping.centre[op].y, grouping.groups[group].height);
    }
  }
  EXPECT_EQ(seen.size(), problem.op_count());
}

TEST(OpGroups, FlatIsOneGroup) {
  const Problem problem(testing::random_draft({.ops = 20}, 3));
  const Grouping grouping = flat_grouping(problem);
  EXPECT_EQ(grouping.groups.size(), 1U);
  expect_partition(problem, grouping);
}

TEST(OpGroups, SmallGraphsHaveNoBlocks) {
  const Problem problem(testing::random_draft({.ops = 20}, 3));
  EXPECT_FALSE(block_grouping(problem));
}

TEST(OpGroups, BlocksOfLargeGraphsAreFewAndInLayers) {
  for (const GraphFamily family : values_of<GraphFamily>()) {
    GenerateOptions options;
    options.family = family;
    options.ops = 1500;
    const Problem problem(generate(options));
    const auto grouping = block_grouping(problem);
    ASSERT_TRUE(grouping) << name_of(family);
    expect_partition(problem, *grouping);
    EXPECT_GE(grouping->groups.size(), 4U) << name_of(family);
    EXPECT_LE(grouping->groups.size(), 400U) << name_of(family);
    for (std::size_t i = 1; i < grouping->groups.size(); ++i) {
      EXPECT_LE(grouping->groups[i - 1].layer, grouping->groups[i].layer);
    }
  }
}

TEST(OpGroups, NamesMakeBlocksWhereTheyDivideTheOpsWell) {
  ProblemDraft draft = testing::random_draft({.ops = 60}, 5);
  for (std::size_t i = 0; i < draft.ops.size(); ++i) {
    draft.ops[i].name = "net/layer" + std::to_string(i / 10) + "/op" + std::to_string(i);
  }
  const Problem problem(std::move(draft));
  const auto grouping = block_grouping(problem);
  ASSERT_TRUE(grouping);
  EXPECT_EQ(grouping->groups.size(), 6U);
  std::set<std::string> names;
  for (const OpGroup& group : grouping->groups) names.insert(group.name);
  EXPECT_TRUE(names.contains("net/layer3"));
  expect_partition(problem, *grouping);
}

TEST(OpGroups, StagesAndColocatedOpsAreGroups) {
  const Problem problem = testing::published_problem(
      "msr/throughput/LayerGraphs/bert24_training.json", Objective::throughput);
  const auto colocated = colocation_grouping(problem);
  ASSERT_TRUE(colocated);
  EXPECT_EQ(colocated->groups.size(), problem.group_count());
  expect_partition(problem, *colocated);

  const auto plan = plan_of_placement(problem, Placement(problem.op_count(), DeviceId{0}));
  ASSERT_TRUE(plan);
  const auto stages = plan_grouping(problem, *plan);
  ASSERT_TRUE(stages);
  EXPECT_EQ(stages->name, "stages");
  expect_partition(problem, *stages);
}

}  // namespace
}  // namespace placewright
