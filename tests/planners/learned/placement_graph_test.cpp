#include "planners/learned/placement_graph.h"

#include <cmath>

#include <gtest/gtest.h>

#include "problem/problem.h"
#include "support/random_problem.h"

namespace placewright::learned {
namespace {

using testing::random_draft;
using testing::RandomProblemOptions;

// Ops in a row on two devices; `times` has the time on each device for each op.
Problem chain(const std::vector<std::pair<double, double>>& times) {
  ProblemDraft draft;
  draft.cluster.kinds = {{"a"}, {"b"}};
  draft.cluster.devices = {{.name = "a", .kind = KindId{0}}, {.name = "b", .kind = KindId{1}}};
  draft.cluster.links = {{DeviceId{0}, DeviceId{1}, 1}, {DeviceId{1}, DeviceId{0}, 1}};
  draft.models = {{.name = "model"}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    draft.ops.push_back(
        {.name = "op" + std::to_string(i), .time = {times[i].first, times[i].second}});
    if (i == 0) continue;
    Tensor tensor;
    tensor.producer = OpId{i - 1};
    tensor.consumers = {OpId{i}};
    draft.tensors.push_back(tensor);
  }
  return Problem(std::move(draft));
}

PlacementGraph graph_of(const Problem& problem, const PlacementGraphOptions& options) {
  return placement_graph(problem, options, Placement(problem.op_count()));
}

TEST(PlacementGraph, ChainsBecomeOneNodeAndAlikeOnesOneForEachFastestDevice) {
  const Problem problem = chain({{1, 2}, {1, 3}, {5, 1}, {4, 1}, {1, 2}});
  EXPECT_EQ(graph_of(problem, {.coarsen = Joining::none}).node_count(), 5U);
  EXPECT_EQ(graph_of(problem, {.coarsen = Joining::chains}).node_count(), 1U);
  const PlacementGraph alike = graph_of(problem, {.coarsen = Joining::alike});
  ASSERT_EQ(alike.node_count(), 3U);
  EXPECT_EQ(alike.ops[NodeId{0}].size(), 2U);
  EXPECT_EQ(alike.ops[NodeId{1}].size(), 2U);
  EXPECT_EQ(alike.edges.size(), 2U);
}

TEST(PlacementGraph, KeepsToTheMostNodes) {
  const Problem problem = chain(std::vector<std::pair<double, double>>(100, {1, 2}));
  for (const std::size_t most : {1U, 7U, 30U, 100U}) {
    EXPECT_LE(graph_of(problem, {.coarsen = Joining::none, .most_nodes = most}).node_count(), most);
  }
}

TEST(PlacementGraph, NodesKeepColocationAndHaveADevice) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RandomProblemOptions options;
    options.ops = 12;
    options.colocation = true;
    options.pins = seed % 2 == 0;
    options.unsupported = seed % 3 == 0;
    options.shared_weights = seed % 5 == 0;
    options.binding_memory = seed % 4 == 0;
    const Problem problem(random_draft(options, seed));
    const PlacementGraph graph = graph_of(problem, {.coarsen = Joining::chains, .most_nodes = 6});
    for (const OpId a : problem.ops()) {
      for (const OpId b : problem.ops()) {
        ASSERT_TRUE(problem.group(a) != problem.group(b) || graph.node_of[a] == graph.node_of[b]);
      }
      for (const DeviceId device : problem.devices()) {
        ASSERT_TRUE(!graph.may_go(graph.node_of[a], device) || problem.allowed(a, device));
      }
    }
    for (const GroupId group : problem.groups()) {
      bool group_has_device = false;
      bool node_has_device = false;
      for (const DeviceId device : problem.devices()) {
        group_has_device = group_has_device || problem.group_allowed(group, device);
        node_has_device =
            node_has_device || graph.may_go(graph.node_of[problem.group_ops(group)[0]], device);
      }
      ASSERT_EQ(group_has_device, node_has_device);
    }
  }
}

TEST(PlacementGraph, FeaturesAreFiniteAndDoNotDependOnTheUnit) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomProblemOptions options;
    options.ops = 15;
    options.unsupported = seed % 2 == 0;
    options.zero_times = seed % 3 == 0;
    options.interconnect = seed % 2 == 0 ? InterconnectKind::links : InterconnectKind::host;
    const ProblemDraft draft = random_draft(options, seed);
    ProblemDraft scaled = draft;
    for (Op& op : scaled.ops) {
      for (double& time : op.time) time *= 1024;
    }
    for (Tensor& tensor : scaled.tensors) {
      tensor.host_time *= 1024;
      for (double& time : tensor.link_times) time *= 1024;
    }
    for (Link& link : scaled.cluster.links) {
      link.latency *= 1024;
      link.bandwidth /= 1024;
    }
    const PlacementGraph graph = graph_of(Problem(draft), {});
    const PlacementGraph same = graph_of(Problem(scaled), {});
    ASSERT_EQ(graph.features.size(), same.features.size());
    for (std::size_t i = 0; i < graph.features.size(); ++i) {
      ASSERT_TRUE(std::isfinite(graph.features[i]));
      ASSERT_NEAR(graph.features[i], same.features[i], 1e-5);
    }
    for (std::size_t i = 0; i < graph.pair_features.size(); ++i) {
      ASSERT_TRUE(std::isfinite(graph.pair_features[i]));
      ASSERT_NEAR(graph.pair_features[i], same.pair_features[i], 1e-5);
    }
  }
}

TEST(FractalDimension, OfALineIsAboutOneAndOfAStarZero) {
  std::vector<std::pair<NodeId, NodeId>> line;
  std::vector<std::pair<NodeId, NodeId>> star;
  for (std::size_t i = 0; i < 40; ++i) {
    line.emplace_back(NodeId{i}, NodeId{i + 1});
    star.emplace_back(NodeId{0}, NodeId{i + 1});
  }
  EXPECT_NEAR(fractal_dimensions(41, line)[20], 0.85, 0.1);
  EXPECT_EQ(fractal_dimensions(41, star)[0], 0);
  EXPECT_EQ(fractal_dimensions(1, {})[0], 0);
}

}  // namespace
}  // namespace placewright::learned
