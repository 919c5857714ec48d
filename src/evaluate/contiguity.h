// Contiguity of a pipeline's stages (semantics.md, "throughput"), on the forward graph of
// device_graph.h: forward ops, and what stands for backward groups without forward ops. The other
// backward ops follow by colocation and are not asked.
//
//   joint       the graph of devices is acyclic: they can be ordered so that every prefix of them
//               covers a down-set of the forward graph. O(ops + edges)
//   per device  no path leaves a device's set and comes back to it; devices may still wait for each
//               other in a cycle. O((ops + edges) x devices / 64); where turned edges close cycles,
//               that for each round until nothing changes

#pragma once

#include "problem/problem.h"

namespace placewright {

bool jointly_contiguous(const Problem& problem, const Placement& placement);

bool per_device_contiguous(const Problem& problem, const Placement& placement);

// As the problem's rules ask.
bool contiguous(const Problem& problem, const Placement& placement);

}  // namespace placewright
