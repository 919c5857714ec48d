#include "report/op_groups.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "analysis/generate.h"
#include "evaluate/placement_plan.h"
#include "report/name_blocks.h"
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

// No two groups wait for each other, directly or through others: edges lead to later layers.
void expect_acyclic(const Problem& problem, const Grouping& grouping) {
  for (const OpId op : problem.ops()) {
    for (const OpId reader : problem.successors(op)) {
      const std::size_t from = grouping.group_of[op];
      const std::size_t to = grouping.group_of[reader];
      if (from == to) continue;
      EXPECT_LT(grouping.groups[from].layer, grouping.groups[to].layer)
          << problem.op(op).name << " -> " << problem.op(reader).name;
    }
  }
}

const DrawnGroup* group_called(const Grouping& grouping, const std::string& name) {
  const auto found = std::ranges::find(grouping.groups, name, &DrawnGroup::name);
  return found == grouping.groups.end() ? nullptr : &*found;
}

// A chain of ops with these names and, where given, further edges between them.
Problem named_chain(const std::vector<std::string>& names,
                    const std::vector<std::pair<std::string, std::string>>& edges = {}) {
  ProblemDraft draft = testing::random_draft({.ops = 1}, 1);
  const Op op = draft.ops.front();
  draft.ops.clear();
  draft.tensors.clear();
  std::map<std::string, OpId> numbered;
  for (const std::string& name : names) {
    numbered[name] = OpId{draft.ops.size()};
    draft.ops.push_back(op);
    draft.ops.back().name = name;
  }
  const auto connect = [&](OpId from, OpId to) {
    draft.tensors.push_back({.producer = from, .consumers = {to}, .bytes = 8});
  };
  for (std::size_t i = 1; i < names.size(); ++i) connect(OpId{i - 1}, OpId{i});
  for (const auto& [from, to] : edges) connect(numbered.at(from), numbered.at(to));
  return Problem(std::move(draft));
}

TEST(OpGroups, FlatIsOneGroup) {
  const Problem problem(testing::random_draft({.ops = 20}, 3));
  const Grouping grouping = flat_grouping(problem);
  EXPECT_EQ(grouping.groups.size(), 1U);
  expect_partition(problem, grouping);
}

TEST(OpGroups, SmallGraphsHaveNoBlocks) {
  const Problem problem(testing::random_draft({.ops = 20}, 3));
  EXPECT_FALSE(block_groupings(problem).blocks);
}

TEST(OpGroups, BlocksOfLargeGraphsAreFewAndInLayers) {
  for (const GraphFamily family : values_of<GraphFamily>()) {
    GenerateOptions options;
    options.family = family;
    options.ops = 1500;
    const Problem problem(generate(options));
    const auto grouping = block_groupings(problem).blocks;
    ASSERT_TRUE(grouping) << name_of(family);
    expect_partition(problem, *grouping);
    EXPECT_GE(grouping->groups.size(), 4U) << name_of(family);
    EXPECT_LE(grouping->groups.size(), 400U) << name_of(family);
    for (std::size_t i = 1; i < grouping->groups.size(); ++i) {
      EXPECT_LE(grouping->groups[i - 1].layer, grouping->groups[i].layer);
    }
    expect_acyclic(problem, *grouping);
  }
}

TEST(OpGroups, NamesMakeBlocksWhereTheyDivideTheOpsWell) {
  const Problem graph(testing::random_draft({.ops = 60}, 5));
  ProblemDraft draft = graph.draft();
  for (const OpId op : graph.ops()) {
    const std::size_t rank = graph.topological_rank(op);
    draft.ops[op.index()].name =
        "net/layer" + std::to_string(rank / 10) + "/op" + std::to_string(rank);
  }
  const Problem problem(std::move(draft));
  const auto grouping = block_groupings(problem).blocks;
  ASSERT_TRUE(grouping);
  EXPECT_EQ(grouping->groups.size(), 6U);
  std::set<std::string> names;
  for (const DrawnGroup& group : grouping->groups) names.insert(group.name);
  EXPECT_TRUE(names.contains("net/layer3"));
  expect_partition(problem, *grouping);
}

// As GPT-2 is: ops of the whole model before and after the layers, residual edges round each part.
TEST(OpGroups, TransformersFoldByLayerInOrder) {
  std::vector<std::string> names = {"transformer.wte/Gather", "transformer/Add"};
  for (int layer = 0; layer < 12; ++layer) {
    const std::string block = "transformer.h." + std::to_string(layer);
    for (const char* part :
         {".ln_1/MVN", ".ln_1/Add", ".attn/MatMul", ".attn/Softmax", ".attn/Out", "/Add",
          ".ln_2/MVN", ".mlp.c_fc/MatMul", ".mlp.act/Gelu", ".mlp.c_proj/MatMul", "/Add_2"}) {
      names.push_back(block + part);
    }
  }
  names.insert(names.end(), {"transformer.ln_f/MVN", "lm_head/MatMul"});
  const Problem problem = named_chain(names, {{"transformer/Add", "transformer.h.0/Add"},
                                              {"transformer.h.0/Add", "transformer.h.0/Add_2"}});
  const auto blocks = block_groupings(problem).blocks;
  ASSERT_TRUE(blocks);
  expect_partition(problem, *blocks);
  expect_acyclic(problem, *blocks);
  for (int layer = 0; layer < 12; ++layer) {
    const DrawnGroup* group = group_called(*blocks, "transformer.h." + std::to_string(layer));
    ASSERT_NE(group, nullptr) << layer;
    EXPECT_EQ(group->ops.size(), 11U);
    if (layer == 0) continue;
    EXPECT_EQ(group->layer,
              group_called(*blocks, "transformer.h." + std::to_string(layer - 1))->layer + 1);
  }
  EXPECT_EQ(blocks->groups.size(), 12U + 4U);
}

TEST(OpGroups, LargerBlocksHaveParts) {
  std::vector<std::string> names;
  for (int i = 0; i < 120; ++i) {
    names.push_back("layer." + std::to_string(i / 20) + (i / 10 % 2 == 0 ? ".attn/op" : ".mlp/op") +
                    std::to_string(i));
  }
  const Problem problem = named_chain(names);
  EXPECT_EQ(block_groupings(problem).blocks->groups.size(), 6U);
  const auto parts = block_groupings(problem).parts;
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->groups.size(), 12U);
  EXPECT_NE(group_called(*parts, "layer.3.mlp"), nullptr);
  expect_acyclic(problem, *parts);
}

TEST(OpGroups, BlocksThatWouldWaitForEachOtherAreCut) {
  std::vector<std::string> names;
  for (int i = 0; i < 80; ++i) {
    names.push_back((i / 8 % 2 == 0 ? "even/op" : "odd/op") + std::to_string(i));
  }
  const auto blocks = name_blocks(named_chain(names), 64);
  EXPECT_EQ(blocks.size(), 10U) << "each stretch of eight ops is a block";
  for (const NameBlock& block : blocks) EXPECT_EQ(block.ops.size(), 8U) << block.name;
}

TEST(OpGroups, OpsWithoutAPathJoinTheirReaders) {
  const Problem problem = named_chain({"stem/a", "Convolution_1", "unit1/bn", "Convolution_2",
                                       "unit2.left/bn", "unit2.right/bn", "Result"},
                                      {{"Convolution_2", "unit2.right/bn"}});
  std::map<std::string, std::size_t> sizes;
  for (const NameBlock& block : name_blocks(problem, 3)) sizes[block.name] = block.ops.size();
  EXPECT_EQ(sizes, (std::map<std::string, std::size_t>{
                       {"stem", 1}, {"unit1", 2}, {"unit2", 3}, {"Result", 1}}));
}

TEST(OpGroups, EachModelIsAGroupAndHasBlocksOfItsOwn) {
  ProblemDraft draft = named_chain(std::vector<std::string>{"a/x", "b/y", "b/z"}).draft();
  draft.models = {{.name = "a"}, {.name = "b"}};
  draft.ops[1].model = draft.ops[2].model = ModelId{1};
  draft.tensors.erase(draft.tensors.begin());
  const Problem problem(std::move(draft));
  const auto models = model_grouping(problem);
  ASSERT_TRUE(models);
  EXPECT_EQ(group_called(*models, "b")->ops.size(), 2U);
  EXPECT_EQ(name_blocks(problem, 2).size(), 2U);
  EXPECT_FALSE(model_grouping(named_chain({"x", "y"})));
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

TEST(OpGroups, WhatThePlannerLookedAtAsOneIsAGroup) {
  const Problem problem = named_chain({"a", "b", "c", "d"});
  Plan plan;
  EXPECT_FALSE(planner_grouping(problem, plan));
  plan.groups = {{OpId{2}, OpId{1}}, {OpId{3}}};
  const auto grouping = planner_grouping(problem, plan);
  ASSERT_TRUE(grouping);
  expect_partition(problem, *grouping);
  expect_acyclic(problem, *grouping);
  EXPECT_EQ(grouping->groups.size(), 3U) << "an op that is in no group stands alone";
  ASSERT_NE(group_called(*grouping, "b …"), nullptr) << "named by the op that comes first";
  EXPECT_EQ(group_called(*grouping, "b …")->ops.size(), 2U);
}

}  // namespace
}  // namespace placewright
