// One round of the graph parsing network: which nodes become one.
//
// Every node keeps its best-scored edge if that score is at least `threshold`. Starting from the
// best kept edge, a group takes in every node whose kept edge leads into it, until no more come;
// then the next best edge that is left starts the next group. A node joins only while some device
// is allowed for the whole group. So groups are connected, they cover every node once, and their
// number is an outcome. O(edges log edges).
//
// The published program has no threshold: every node with an edge is merged, round after round, and
// a connected graph ends as one group. Here an edge less likely than not is not followed.

#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace placewright::learned {

struct ParsedGraph {
  std::vector<std::int64_t> group_of;  // node -> 0 .. group_count-1, by first member
  std::int64_t group_count = 0;
};

// `allowed`: node x device, not zero where a node may go.
ParsedGraph parse_graph(std::int64_t node_count,
                        std::span<const std::pair<std::int64_t, std::int64_t>> edges,
                        std::span<const float> scores, float threshold,
                        std::span<const std::uint8_t> allowed);

}  // namespace placewright::learned
