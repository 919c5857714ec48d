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
