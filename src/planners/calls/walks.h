// Plans from walks over ideals (bounds/call_ideals.h), for the planners of this family.

#pragma once

#include <optional>
#include <vector>

#include "bounds/call_ideals.h"
#include "planners/planner.h"

namespace placewright::calls {

// Topological orders of the graph: depth first, breadth first, the others with random choices.
std::vector<std::vector<CallGraph::Node>> topological_orders(const CallGraph& graph,
                                                             std::size_t count, std::uint64_t seed);

// The best plan of the chains of least sum over the finest ideals within the limit and over
// prefixes of topological orders.
std::optional<Plan> best_chain(const Problem& problem, std::size_t ideal_limit, std::size_t orders,
                               Control& control);

}  // namespace placewright::calls
