// Blocks: the smallest sets of ops that planners move as one, in an order in which they may be cut.
//
// Colocated ops belong together. Where contiguous sets are asked for (throughput and calls;
// docs/semantics.md), so do groups that lie on a common cycle of the forward graph of groups: no
// contiguous placement separates them. What is left is a DAG, and every prefix of a topological
// order of it is a down-set, so cutting the order gives contiguous stages. Where contiguity is not
// asked for, blocks are the colocation groups, ordered by their first op.
//
// O(ops + edges).

#pragma once

#include <utility>
#include <vector>

#include "problem/problem.h"

namespace placewright {

using BlockId = Id<struct BlockNoun>;

struct Blocks {
  Rows<BlockId, OpId> ops;
  Table<OpId, BlockId> block_of;
  Rows<BlockId, BlockId> successors;  // distinct; where contiguity is asked for, ids ascend

  [[nodiscard]] std::size_t size() const { return ops.size(); }
  [[nodiscard]] IdRange<BlockId> keys() const { return ids<BlockId>(size()); }
};

// Numbered in a depth-first topological order: a chain is followed to its end before the next
// begins.
Blocks blocks_of(const Problem& problem);

// The edges between groups that contiguity respects: those of the forward graph, and for a group of
// backward ops only those of its backward edges turned round.
std::vector<std::pair<GroupId, GroupId>> contiguity_edges(const Problem& problem);

}  // namespace placewright
