#include "solvers/graph_partition.h"

#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace placewright::solvers {
namespace {

// `cliques` cliques of `size` nodes in a ring, joined by single light edges: the natural parts.
PartitionGraph ring_of_cliques(int cliques, int size) {
  PartitionGraph graph;
  graph.node_weight.assign(static_cast<std::size_t>(cliques * size), 1.5);
  for (int c = 0; c < cliques; ++c) {
    for (int i = 0; i < size; ++i) {
      for (int j = i + 1; j < size; ++j) graph.edges.push_back({c * size + i, c * size + j, 1.0});
    }
    graph.edges.push_back({c * size, ((c + 1) % cliques) * size + 1, 0.25});
  }
  return graph;
}

std::vector<double> loads(const PartitionGraph& graph, const PartitionResult& result, int parts) {
  std::vector<double> load(static_cast<std::size_t>(parts), 0);
  for (std::size_t i = 0; i < result.part.size(); ++i) {
    load[static_cast<std::size_t>(result.part[i])] += graph.node_weight[i];
  }
  return load;
}

TEST(GraphPartition, FindsTheNaturalParts) {
  const PartitionGraph graph = ring_of_cliques(4, 8);
  const PartitionResult result = partition_graph(graph, {.parts = 4});
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_DOUBLE_EQ(result.cut, 1.0);
  for (const double load : loads(graph, result, 4)) EXPECT_DOUBLE_EQ(load, 12.0);
}

TEST(GraphPartition, HonoursShares) {
  const PartitionGraph graph = ring_of_cliques(4, 8);
  const PartitionResult result = partition_graph(graph, {.parts = 2, .shares = {3.0, 1.0}});
  ASSERT_TRUE(result.ok()) << result.error;
  const std::vector<double> load = loads(graph, result, 2);
  EXPECT_NEAR(load[0], 36.0, 3.0);
  EXPECT_NEAR(load[1], 12.0, 3.0);
}

TEST(GraphPartition, RepeatsItself) {
  const PartitionGraph graph = ring_of_cliques(30, 5);
  const PartitionOptions options{.parts = 7, .seed = 42};
  const PartitionResult first = partition_graph(graph, options);
  ASSERT_TRUE(first.ok()) << first.error;
  partition_graph(graph, {.parts = 3, .seed = 1});
  std::vector<PartitionResult> others(3);
  {
    std::vector<std::jthread> threads;
    for (PartitionResult& other : others) {
      threads.emplace_back([&] { other = partition_graph(graph, options); });
    }
  }
  for (const PartitionResult& other : others) EXPECT_EQ(other.part, first.part);
}

TEST(GraphPartition, TakesOddGraphs) {
  EXPECT_TRUE(partition_graph({}, {.parts = 3}).ok());
  const PartitionResult one = partition_graph({{2.0}, {}}, {.parts = 3});
  ASSERT_TRUE(one.ok()) << one.error;
  EXPECT_EQ(one.part.size(), 1U);
  const PartitionResult whole = partition_graph({{1, 1}, {{0, 1, 5}}}, {.parts = 1});
  EXPECT_EQ(whole.part, (std::vector<int>{0, 0}));
  const PartitionResult weightless =
      partition_graph({{0, 0, 0, 0}, {{0, 1, 0}, {1, 1, 3}, {0, 1, 1}, {1, 0, 1}}}, {.parts = 2});
  ASSERT_TRUE(weightless.ok()) << weightless.error;
  for (const int part : weightless.part) EXPECT_TRUE(part == 0 || part == 1);
  const PartitionResult uneven =
      partition_graph({{1e15, 1e-9, 1e-9}, {{0, 1, 1e-300}, {1, 2, 1e300}}}, {.parts = 2});
  EXPECT_TRUE(uneven.ok()) << uneven.error;
}

TEST(GraphPartition, RejectsWrongInput) {
  EXPECT_EQ(partition_graph({{1, 1}, {{0, 2, 1}}}, {}).error, "edge 0 leaves the graph");
  EXPECT_EQ(partition_graph({{1, -1}, {}}, {}).error, "the weight of node 1 is not a number >= 0");
  EXPECT_FALSE(partition_graph({{1, 1}, {}}, {.parts = 0}).ok());
  EXPECT_FALSE(partition_graph({{1, 1}, {}}, {.parts = 2, .shares = {1}}).ok());
}

}  // namespace
}  // namespace placewright::solvers
