// A problem as the learned planners see it: nodes with features, edges, and where each node may go.
//
// A node is a set of ops that share a device: a colocation group, joined with others by
//
//   chains   HSDAG's first step: walking in topological order, an op with one successor whose only
//            predecessor it is joins that successor
//   alike    the same, but only where both are fastest on the same device (ours: a chain whose
//            halves want different devices stays in two)
//
// A node grows only while some device may run all of it. Above `most_nodes` neighbours in
// topological order are joined as well, for the planners that visit nodes one after the other.
//
// Features do not depend on the size or the unit of the problem, so that a policy carries over:
//
//   of a node             counts of op types (hashed into buckets), degrees, output shape, position
//                         in topological order, fractal dimension: HSDAG's. With `costs` also the
//                         node's share of time and memory, its slack on the critical path and what
//                         its tensors cost to move: ours
//   of a node and device  time there against the best device and against the whole, the device's
//                         time for the whole model, transfers, and what HEFT would do: ours
//
// O(nodes x edges within distance 8) for the fractal dimension, O(ops + edges) for the rest.
//
// Reference: S. Duan et al., "A structure-aware framework for learning device placements on
// computation graphs", NeurIPS 2024.

#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "problem/ids.h"
#include "problem/spelling.h"

namespace placewright {
class Problem;
}

namespace placewright::learned {

using NodeId = Id<struct NodeNoun>;

enum class Joining { none, chains, alike };

}  // namespace placewright::learned

namespace placewright {

template <>
inline constexpr auto kSpellings<learned::Joining> =
    std::to_array<Spelling<learned::Joining>>({{learned::Joining::none, "none"},
                                               {learned::Joining::chains, "chains"},
                                               {learned::Joining::alike, "alike"}});

}  // namespace placewright

namespace placewright::learned {

struct PlacementGraphOptions {
  Joining coarsen = Joining::none;
  bool structure = true;  // HSDAG's features beyond op types
  bool costs = true;      // ours
  std::size_t most_nodes = SIZE_MAX;
};

struct PlacementGraph {
  std::size_t device_count = 0;
  Table<OpId, NodeId> node_of;
  Rows<NodeId, OpId> ops;                        // nodes are numbered in topological order
  std::vector<std::pair<NodeId, NodeId>> edges;  // distinct, no loops
  std::vector<float> features;                   // node x kNodeFeatures
  std::vector<float> pair_features;              // (node x device) x kPairFeatures
  std::vector<std::uint8_t> allowed;             // node x device

  [[nodiscard]] std::size_t node_count() const { return ops.size(); }
  [[nodiscard]] bool may_go(NodeId node, DeviceId device) const {
    return allowed[node.index() * device_count + device.index()] != 0;
  }
};

inline constexpr std::size_t kTypeBuckets = 24;
inline constexpr std::size_t kStructureFeatures = 8;
inline constexpr std::size_t kCostFeatures = 6;
inline constexpr std::size_t kNodeFeatures = kTypeBuckets + kStructureFeatures + kCostFeatures;
inline constexpr std::size_t kPairFeatures = 6;

// `hint`: a plan of a quick planner, for the features; not valid devices where there is none.
PlacementGraph placement_graph(const Problem& problem, const PlacementGraphOptions& options,
                               const Table<OpId, DeviceId>& hint);

// Slope of log(nodes within distance r) against log r, breadth-first in the undirected graph.
std::vector<float> fractal_dimensions(std::size_t node_count,
                                      std::span<const std::pair<NodeId, NodeId>> edges);

}  // namespace placewright::learned
