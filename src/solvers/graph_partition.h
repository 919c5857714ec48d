// Partition of an undirected weighted graph into parts of given sizes with a small cut, by Scotch.
//
// Nodes are spread over the parts so that each part's share of the node weight is close to its
// target share, and the weight of the edges between different parts is small. A heuristic
// (multilevel, recursive bisection and refinement).
//
// Cost: about linear in nodes and edges, times log(parts).
// Limits: weights are scaled to 32-bit integers inside (relative precision about 2^-28 of the
// total), so a balance is kept up to that; a node heavier than its part's share cannot be balanced,
// and a part may stay empty. Scotch keeps global state: calls from several threads run one after
// the other. The same seed gives the same answer. Reference: Pellegrini and Roman, "Scotch: a
// software package for static mapping", HPCN 1996.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace placewright::solvers {

struct PartitionEdge {
  int a = 0;
  int b = 0;
  double weight = 1;
};

// Parallel edges add up; loops are ignored.
struct PartitionGraph {
  std::vector<double> node_weight;
  std::vector<PartitionEdge> edges;
};

struct PartitionOptions {
  int parts = 2;
  std::vector<double> shares;  // target size of each part, relative to the others; empty: all equal
  double imbalance = 0.05;     // allowed excess of a part over its target
  std::uint64_t seed = 0;
};

struct PartitionResult {
  std::string error;      // empty when all went well
  std::vector<int> part;  // one per node, in [0, parts)
  double cut = 0;         // weight of the edges between different parts

  bool ok() const { return error.empty(); }
};

PartitionResult partition_graph(const PartitionGraph& graph, const PartitionOptions& options);

}  // namespace placewright::solvers
