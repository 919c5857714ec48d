// Where the nodes of a directed acyclic graph are drawn: in layers from top to bottom, every edge
// pointing down, few crossings.
//
// The four steps of Sugiyama, Tagawa and Toda:
//   layers       longest path from the sources; a source sinks to just above its first reader
//   bends        a long edge gets a bend in each layer that it passes, so that it goes round the
//                nodes there; shortest edges first, up to two for each node
//   order        barycentre sweeps down and up; the order with the fewest crossings is kept
//   coordinates  sweeps again: every node wants to be at the mean of its neighbours, and of all
//                positions that keep order and distance the nearest (least squares) is taken, which
//                pool-adjacent-violators finds in linear time
//
// Time O(sweeps x (nodes + bends + edges) log nodes): 10 ms for 1,000 nodes, 0.1 s for 5,000.
//
// Reference: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical
// system structures", IEEE Transactions on Systems, Man, and Cybernetics 11 (1981).

#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace placewright {

struct Point {
  double x = 0;
  double y = 0;
};

struct NodeSize {
  double width = 136;
  double height = 34;
  double gap_across = 18;  // between neighbours in a layer
  double gap_down = 34;    // between layers
};

struct LayeredLayout {
  std::vector<Point> centre;              // of each node
  std::vector<std::uint32_t> layer;       // of each node
  std::vector<std::vector<Point>> bends;  // of each edge, from top to bottom
  double width = 0;
  double height = 0;
};

using LayoutEdge = std::pair<std::uint32_t, std::uint32_t>;

// Positions fill (0, 0) .. (width, height). `edges` must be acyclic; nodes are 0 .. node_count-1.
LayeredLayout layered_layout(std::size_t node_count, const std::vector<LayoutEdge>& edges,
                             const NodeSize& size = {});

// The same, with each connected part of the graph laid out on its own and the parts set in rows,
// high ones first, so that the whole is about as wide as high. Layers count within a part.
LayeredLayout packed_layout(std::size_t node_count, const std::vector<LayoutEdge>& edges,
                            const NodeSize& size = {});

// Of each node: the longest path from a source, with sources moved down to their readers.
std::vector<std::uint32_t> layers_of(std::size_t node_count, const std::vector<LayoutEdge>& edges);

}  // namespace placewright
