#include "planners/learned/graph_parsing.h"

#include <queue>
#include <set>

#include <gtest/gtest.h>

#include "support/random_problem.h"

namespace placewright::learned {
namespace {

using Edge = std::pair<std::int64_t, std::int64_t>;
using testing::RandomSource;

struct ScoredGraph {
  std::int64_t node_count = 0;
  std::int64_t device_count = 0;
  std::vector<Edge> edges;
  std::vector<float> scores;
  std::vector<std::uint8_t> allowed;

  [[nodiscard]] ParsedGraph parsed(float threshold = 0.5F) const {
    return parse_graph(node_count, edges, scores, threshold, allowed);
  }
};

ScoredGraph random_graph(RandomSource& random) {
  ScoredGraph graph;
  graph.node_count = static_cast<std::int64_t>(random.between(1, 30));
  graph.device_count = static_cast<std::int64_t>(random.between(1, 3));
  for (std::int64_t a = 0; a < graph.node_count; ++a) {
    for (std::int64_t b = a + 1; b < graph.node_count; ++b) {
      if (!random.chance(0.15)) continue;
      graph.edges.emplace_back(a, b);
      graph.scores.push_back(static_cast<float>(random.unit()));
    }
    for (std::int64_t d = 0; d < graph.device_count; ++d) {
      graph.allowed.push_back(d == 0 || random.chance(0.6) ? 1 : 0);
    }
  }
  return graph;
}

// Whether the nodes of a group reach each other inside it.
bool connected(const ScoredGraph& graph, const ParsedGraph& parsed, std::int64_t group) {
  std::vector<std::int64_t> members;
  for (std::int64_t node = 0; node < graph.node_count; ++node) {
    if (parsed.group_of[static_cast<std::size_t>(node)] == group) members.push_back(node);
  }
  std::set<std::int64_t> seen{members.front()};
  std::queue<std::int64_t> open;
  open.push(members.front());
  while (!open.empty()) {
    const std::int64_t node = open.front();
    open.pop();
    for (const auto& [a, b] : graph.edges) {
      const std::int64_t other = a == node ? b : b == node ? a : -1;
      if (other < 0 || parsed.group_of[static_cast<std::size_t>(other)] != group) continue;
      if (seen.insert(other).second) open.push(other);
    }
  }
  return seen.size() == members.size();
}

TEST(GraphParsing, GroupsCoverEveryNodeOnceAndAreConnected) {
  RandomSource random(3);
  for (int i = 0; i < 500; ++i) {
    const ScoredGraph graph = random_graph(random);
    const ParsedGraph parsed = graph.parsed();
    ASSERT_EQ(parsed.group_of.size(), static_cast<std::size_t>(graph.node_count));
    const std::set<std::int64_t> groups(parsed.group_of.begin(), parsed.group_of.end());
    ASSERT_EQ(groups.size(), static_cast<std::size_t>(parsed.group_count));
    ASSERT_EQ(*groups.begin(), 0);
    ASSERT_EQ(*groups.rbegin(), parsed.group_count - 1);
    for (const std::int64_t group : groups) ASSERT_TRUE(connected(graph, parsed, group));
  }
}

TEST(GraphParsing, EveryGroupHasADeviceThatAllItsNodesMayUse) {
  RandomSource random(4);
  for (int i = 0; i < 200; ++i) {
    ScoredGraph graph = random_graph(random);
    if (graph.device_count < 2) continue;
    // Half of the nodes may use only the first device, the others only the second.
    for (std::int64_t node = 0; node < graph.node_count; ++node) {
      for (std::int64_t d = 0; d < graph.device_count; ++d) {
        graph.allowed[static_cast<std::size_t>(node * graph.device_count + d)] =
            d == node % 2 ? 1 : 0;
      }
    }
    const ParsedGraph parsed = graph.parsed(0);
    for (std::size_t a = 0; a < parsed.group_of.size(); ++a) {
      for (std::size_t b = 0; b < parsed.group_of.size(); ++b) {
        ASSERT_TRUE(parsed.group_of[a] != parsed.group_of[b] || a % 2 == b % 2);
      }
    }
  }
}

TEST(GraphParsing, FollowsTheBestEdgesOnly) {
  // 0 -0.9- 1 -0.6- 2 -0.8- 3: nodes 1 and 2 each have a better edge than the one between them.
  const ScoredGraph graph{4, 1, {{0, 1}, {1, 2}, {2, 3}}, {0.9F, 0.6F, 0.8F}, {1, 1, 1, 1}};
  EXPECT_EQ(graph.parsed().group_of, (std::vector<std::int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(graph.parsed(0.85F).group_of, (std::vector<std::int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(graph.parsed(0.95F).group_count, 4);
}

TEST(GraphParsing, AChainOfBestEdgesIsOneGroup) {
  const ScoredGraph graph{4, 1, {{0, 1}, {1, 2}, {2, 3}}, {0.7F, 0.8F, 0.75F}, {1, 1, 1, 1}};
  EXPECT_EQ(graph.parsed().group_count, 1);
}

}  // namespace
}  // namespace placewright::learned
