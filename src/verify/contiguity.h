// Contiguity of pipelines (docs/semantics.md, "throughput"): who feeds whom among the stages.

#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"
#include "verify/findings.h"

namespace placewright::verifying {

// The forward graph, on which contiguity is asked. Nodes are ops and, where backward edges of
// orphans count turned round, an entry and an exit of each colocation group concerned: an edge
// from group to group stands for edges from every forward op of the one to every forward op of the
// other, and an orphan (backward ops only) is passed through.
struct ForwardGraph {
  std::vector<OpId> op_of;                                 // node -> the op that names it
  std::vector<std::pair<std::size_t, std::size_t>> edges;  // node -> node, sorted, each once
};

ForwardGraph forward_graph(const Problem& problem);

// Stages in an order in which each feeds only later ones, of several candidates the smallest
// position first; empty if they wait for each other in a circle.
std::vector<std::size_t> feeding_order(const Problem& problem, const std::vector<Stage>& stages);

// joint: no circle of stages; and, when `listed_by_plan`, no stage feeds an earlier one.
void check_joint_contiguity(const Problem& problem, const std::vector<Stage>& stages,
                            bool listed_by_plan, Findings& findings);

// per-device: no path leaves a stage and comes back to it.
void check_own_contiguity(const Problem& problem, const std::vector<Stage>& stages,
                          Findings& findings);

}  // namespace placewright::verifying
