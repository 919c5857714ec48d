#include "profiling/fused_ops.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace placewright {
namespace {

using ::testing::ElementsAre;

TensorKey input_number(std::size_t number) {
  return {TensorKey::kModelInput, number};
}

// Ops called a, b, … that read the tensors given by number of op.
ModelGraph graph_of(const std::vector<std::vector<std::size_t>>& inputs) {
  ModelGraph graph;
  for (const auto& reads : inputs) {
    GraphOp op;
    op.name = std::string(1, static_cast<char>('a' + graph.ops.size()));
    if (reads.empty()) op.inputs.push_back(input_number(0));
    for (const std::size_t producer : reads) op.inputs.push_back({producer, 0});
    op.outputs.push_back({"f32", ElementKind::real, {1}, 4});
    graph.ops.push_back(std::move(op));
  }
  return graph;
}

ExecutedNode node(const std::string& name, std::vector<std::string> originals,
                  std::vector<std::string> inputs = {}) {
  return {name, "", std::move(originals), std::move(inputs)};
}

TEST(FusedOps, AFusedNodesTimeIsAtItsLastOpThatReadsFromOutside) {
  // a ─► b ─► c(+a) ─► d: b, c and d are executed as one node.
  const ModelGraph graph = graph_of({{}, {0}, {1, 0}, {2}});
  const auto times = times_of_ops(
      graph, {node("a", {"a"}), node("b", {"b", "c", "d", "weights of b"}, {"a"})}, {1, 5});
  EXPECT_THAT(times, ElementsAre(1, 0, 5, 0));
}

TEST(FusedOps, ReordersCountToTheOpThatReadsThemElseToTheOneTheyRead) {
  const ModelGraph graph = graph_of({{}, {0}});
  const auto times =
      times_of_ops(graph,
                   {node("in", {}), node("first", {}, {"in"}), node("second", {}, {"first"}),
                    node("a", {"a"}, {"second"}), node("b", {"b"}, {"a"}), node("out", {}, {"b"})},
                   {0.5, 1, 2, 10, 20, 4});
  EXPECT_THAT(times, ElementsAre(13.5, 24));
}

TEST(FusedOps, GroupsOfSeveralKindsAreJoined) {
  const ModelGraph graph = graph_of({{}, {0}, {1}, {2}});
  const auto groups =
      fused_groups(graph, {{node("a", {"a", "b"}), node("c", {"c"}), node("d", {"d"})},
                           {node("a", {"a"}), node("b", {"b", "c"}), node("d", {"d"})}});
  EXPECT_THAT(groups, ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(FusedOps, AGroupThatWouldCloseACycleIsLeftApart) {
  // a ─► b ─► c and a ─► c: without b, a and c cannot be one.
  const ModelGraph graph = graph_of({{}, {0}, {1, 0}});
  EXPECT_TRUE(fused_groups(graph, {{node("a", {"a", "c"}), node("b", {"b"})}}).empty());
  // Two groups that are harmless each but not together: a ─► b, c ─► d; {a, d} and {b, c}.
  const ModelGraph crossed = graph_of({{}, {0}, {}, {2}});
  EXPECT_THAT(fused_groups(crossed, {{node("x", {"a", "d"}), node("y", {"b", "c"})}}),
              ElementsAre(ElementsAre(0, 3)));
}

TEST(FusedOps, ARemovedOpGoesWithWhatFeedsIt) {
  const ModelGraph graph = graph_of({{}, {0}, {1}});
  EXPECT_THAT(fused_groups(graph, {{node("a", {"a"}), node("c", {"c"})}}),
              ElementsAre(ElementsAre(0, 1)));
}

TEST(FusedOps, AnOpThatNobodyNamesIsKnownByItsWeights) {
  // b multiplies by its weights and c adds a bias: executed as one node that is called c.
  ModelGraph graph = graph_of({{}, {0}, {1}, {0}});
  graph.weights.push_back({"weights of b", 4, {1}});
  const std::vector<ExecutedNode> nodes{node("a", {"a"}), node("weights of b", {"weights of b"}),
                                        node("packed", {}, {"weights of b"}),
                                        node("c", {"c"}, {"a", "packed"}), node("d", {"d"}, {"a"})};
  EXPECT_THAT(fused_groups(graph, {nodes}), ElementsAre(ElementsAre(1, 2)));
  EXPECT_THAT(times_of_ops(graph, nodes, {1, 0, 0, 5, 2}), ElementsAre(1, 5, 0, 2));
  // Another op with these weights is not meant.
  graph.weights.front().ops = {3};
  EXPECT_THAT(ops_of_nodes(graph, nodes)[3], ElementsAre(2));
}

TEST(FusedOps, WhatLiesBetweenTheOpsOfANodeBelongsToIt) {
  // a and c are one node; b, which nobody names, reads a and another op, and c reads b.
  const ModelGraph graph = graph_of({{}, {0, 3}, {1}, {}});
  const std::vector<ExecutedNode> nodes{node("ac", {"a", "c"}, {"d"}), node("d", {"d"})};
  EXPECT_THAT(ops_of_nodes(graph, nodes)[0], ElementsAre(0, 1, 2));
}

TEST(FusedOps, ANodeThatMakesOtherSizesThanTheModelGoesWithItsReaders) {
  // b is executed with the stride of c, which reads it, and of d.
  ModelGraph graph = graph_of({{}, {0}, {1}, {1}, {2}});
  graph.ops[1].outputs.front().shape = {1, 16, 8, 8};
  std::vector<ExecutedNode> nodes{node("a", {"a"}), node("b", {"b"}, {"a"}),
                                  node("c", {"c"}, {"b"}), node("d", {"d"}, {"b"}),
                                  node("e", {"e"}, {"c"})};
  nodes[1].elements = std::size_t{16} * 4 * 4;
  EXPECT_THAT(fused_groups(graph, {nodes}), ElementsAre(ElementsAre(1, 2, 3)));
  nodes[1].elements = std::size_t{16} * 8 * 8;
  EXPECT_TRUE(fused_groups(graph, {nodes}).empty());
  nodes[1].elements = 0;  // nobody says
  EXPECT_TRUE(fused_groups(graph, {nodes}).empty());
}

TEST(FusedOps, AGroupIsTimedWhereAllThatLeavesItDependsOn) {
  // a ─► b ─► c, d: c and d leave the group, both depend on b; then only d leaves.
  ModelGraph graph = graph_of({{}, {0}, {1}, {1}, {2}, {3}});
  EXPECT_THAT(gates_of(graph, {{0, 1, 2, 3}}), ElementsAre(std::optional<std::size_t>{1}));
  EXPECT_THAT(gates_of(graph, {{3, 5}}), ElementsAre(std::optional<std::size_t>{5}));
  // c and d alone have nothing in common.
  EXPECT_THAT(gates_of(graph, {{2, 3}}), ElementsAre(std::optional<std::size_t>{}));
}

TEST(FusedOps, OrderedGroupsHoldEveryOpOnceAndReadOnlyEarlierOnes) {
  const ModelGraph graph = graph_of({{}, {0}, {0}, {1, 2}, {3}, {2}});
  const auto ordered = ordered_groups(graph, {{1, 3}, {2, 5}});
  std::vector<std::size_t> place(graph.ops.size(), graph.ops.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (const std::size_t op : ordered[i]) {
      place[op] = i;
      ++count;
    }
  }
  EXPECT_EQ(count, graph.ops.size());
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const TensorKey& input : graph.ops[op].inputs) {
      if (!input.is_model_input()) {
        EXPECT_LE(place[input.op], place[op]);
      }
    }
  }
  EXPECT_EQ(place[1], place[3]);
  EXPECT_EQ(place[2], place[5]);
}

}  // namespace
}  // namespace placewright
