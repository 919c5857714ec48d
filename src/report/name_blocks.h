// Blocks of a model by the hierarchy that the names of its ops spell, as
// "encoder.layer.3.attention/MatMul" does.
//
//   tree      a name's parts, without the last, are a path in a tree; each model has a tree. An op
//             whose name is one word takes the path that all its readers have in common.
//   blocks    a subtree of at most `most_ops` ops is a block. Larger ones are opened; what stands
//             in an opened one itself makes a block for each connected part.
//   acyclic   blocks that wait for each other in a circle are cut: an op's level is the number of
//             borders between these blocks on the longest way to it, and each level of a block
//             becomes a block. An edge between two of the pieces leads to a higher level, so there
//             is no circle left.
//
// O((ops + edges) x depth of the names x log ops).

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace placewright {

struct NameBlock {
  std::string name;
  std::vector<OpId> ops;
};

// Every op is in one block. Where names have no parts, the blocks are the connected parts of the
// graph.
std::vector<NameBlock> name_blocks(const Problem& problem, std::size_t most_ops);

}  // namespace placewright
