// What the backend's executed nodes say about the ops of the model.
//
// An executed node stands for one op, for several that were fused, or for none (layout reorders):
// for those that it names, and of those that nobody names for the ones whose weights it reads, and
// for what lies between its ops. Times and groups of ops follow:
//
//   time   An executed node can start when the last of its inputs is there. So its whole time goes
//          to the last of its ops, in topological order, that reads something from outside of it;
//          the others take no time. A node without ops gives its time to the node that reads it
//          (where none does, to the one that it reads).
//   groups The ops of an executed node must not be parted. An op that no executed node stands for
//          (the backend removed it) goes with what feeds it. A node that makes other sizes than the
//          model says goes with what reads it, since a cut there would undo that. Groups of several
//          device kinds are joined. A group whose contraction would close a cycle is left apart.
//
// O(groups (ops + edges)).

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "backends/runtime.h"

namespace placewright {

using OpGroup = std::vector<std::size_t>;  // ops, ascending

// By executed node, its ops.
std::vector<OpGroup> ops_of_nodes(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes);

// `node_times` by executed node; by op. The sum stays the same wherever some node has an op.
std::vector<double> times_of_ops(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes,
                                 const std::vector<double>& node_times);

// Groups of several ops, disjoint, in the order of their first op. `kinds`: the executed nodes of
// each device kind.
std::vector<OpGroup> fused_groups(const ModelGraph& graph,
                                  const std::vector<std::vector<ExecutedNode>>& kinds);

// By group: the op that bears its time. Nothing leaves a group before all of it has run, so that is
// the last op that all that leaves the group depends on; nullopt where there is none.
std::vector<std::optional<std::size_t>> gates_of(const ModelGraph& graph,
                                                 const std::vector<OpGroup>& groups);

// All ops as groups, the single ones too, in a topological order of the contracted graph.
std::vector<OpGroup> ordered_groups(const ModelGraph& graph, const std::vector<OpGroup>& groups);

}  // namespace placewright
