// The graph that contiguity looks at, and the same with each device's ops contracted to one node:
// who feeds whom in a pipeline (semantics.md, "throughput").
//
// Nodes of the forward graph are the forward ops and, for each orphan (a colocation group that has
// backward ops only), one that its first op stands for. Edges are those between forward ops, and
// those between two backward ops of which one or both belong to an orphan, turned round: u -> v
// goes from each node of v's group to each node of u's. Turned edges can close a cycle.

#pragma once

#include <utility>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// (from, to); an edge can occur more than once.
std::vector<std::pair<OpId, OpId>> forward_edges(const Problem& problem);

// For each device the others that read from it, once for each edge between nodes. Ops without a
// device are left out.
Rows<DeviceId, DeviceId> device_graph(const Problem& problem, const Placement& placement);

}  // namespace placewright
