#include "report/layered_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "support/random_problem.h"

namespace placewright {
namespace {

std::vector<LayoutEdge> random_edges(std::size_t nodes, double density, std::uint64_t seed) {
  testing::RandomSource random(seed);
  std::vector<LayoutEdge> edges;
  for (std::uint32_t from = 0; from < nodes; ++from) {
    for (std::uint32_t to = from + 1; to < nodes; ++to) {
      if (random.chance(density)) edges.emplace_back(from, to);
    }
  }
  return edges;
}

void expect_no_overlaps(const LayeredLayout& layout, const NodeSize& size) {
  std::map<std::uint32_t, std::vector<double>> rows;
  for (std::size_t node = 0; node < layout.centre.size(); ++node) {
    rows[layout.layer[node]].push_back(layout.centre[node].x);
    EXPECT_GE(layout.centre[node].x, size.width / 2 - 1e-6);
    EXPECT_LE(layout.centre[node].x, layout.width - size.width / 2 + 1e-6);
    EXPECT_LE(layout.centre[node].y, layout.height - size.height / 2 + 1e-6);
  }
  for (auto& [layer, xs] : rows) {
    std::sort(xs.begin(), xs.end());
    for (std::size_t i = 1; i < xs.size(); ++i) {
      EXPECT_GE(xs[i] - xs[i - 1], size.width + size.gap_across - 1e-6) << "layer " << layer;
    }
  }
}

TEST(LayeredLayout, EdgesPointDownAndNothingOverlaps) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::size_t nodes = 1 + seed % 40;
    const auto edges = random_edges(nodes, 0.03 + 0.01 * static_cast<double>(seed % 12), seed);
    const LayeredLayout layout = layered_layout(nodes, edges);
    ASSERT_EQ(layout.centre.size(), nodes);
    for (const auto& [from, to] : edges) {
      EXPECT_LT(layout.layer[from], layout.layer[to]);
      EXPECT_LT(layout.centre[from].y, layout.centre[to].y);
    }
    expect_no_overlaps(layout, NodeSize{});
  }
}

TEST(LayeredLayout, LongEdgesBendOnceInEachLayerTheyPass) {
  // 0 -> 1 -> 2 -> 3 and 0 -> 3, which has to go round 1 and 2.
  const LayeredLayout layout = layered_layout(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}});
  EXPECT_TRUE(layout.bends[0].empty());
  ASSERT_EQ(layout.bends[3].size(), 2U);
  for (const Point& bend : layout.bends[3]) {
    EXPECT_GT(std::abs(bend.x - layout.centre[1].x), NodeSize{}.width / 2);
  }
}

TEST(LayeredLayout, ASourceSinksToItsReader) {
  // 4 is read at the end of the chain only.
  const auto layers = layers_of(5, {{0, 1}, {1, 2}, {2, 3}, {4, 3}});
  EXPECT_EQ(layers, (std::vector<std::uint32_t>{0, 1, 2, 3, 2}));
}

TEST(LayeredLayout, TwoChainsDoNotCross) {
  // Given interleaved: 0-2-4 and 1-3-5, with a join at the end.
  const LayeredLayout layout = layered_layout(7, {{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 6}});
  const auto left = [&](std::size_t a, std::size_t b) {
    return layout.centre[a].x < layout.centre[b].x;
  };
  EXPECT_EQ(left(0, 1), left(2, 3));
  EXPECT_EQ(left(2, 3), left(4, 5));
}

TEST(PackedLayout, PartsLieApartInRows) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const std::size_t nodes = 60;
    const auto edges = random_edges(nodes, 0.01, seed);
    const NodeSize size;
    const LayeredLayout layout = packed_layout(nodes, edges, size);
    for (std::size_t a = 0; a < nodes; ++a) {
      for (std::size_t b = a + 1; b < nodes; ++b) {
        const bool apart =
            std::abs(layout.centre[a].x - layout.centre[b].x) >=
                size.width + size.gap_across - 1e-6 ||
            std::abs(layout.centre[a].y - layout.centre[b].y) >= size.height + size.gap_down - 1e-6;
        EXPECT_TRUE(apart) << a << " and " << b;
      }
      EXPECT_LE(layout.centre[a].x + size.width / 2, layout.width + 1e-6);
      EXPECT_LE(layout.centre[a].y + size.height / 2, layout.height + 1e-6);
    }
    for (const auto& [from, to] : edges) EXPECT_LT(layout.centre[from].y, layout.centre[to].y);
    EXPECT_LT(layout.width, 20 * size.width) << "60 nodes are not set in one row";
  }
}

TEST(LayeredLayout, NothingToDraw) {
  const LayeredLayout layout = layered_layout(0, {});
  EXPECT_TRUE(layout.centre.empty());
  EXPECT_EQ(layout.height, 0);
}

}  // namespace
}  // namespace placewright
