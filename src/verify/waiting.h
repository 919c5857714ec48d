// Who waits for whom: an order that respects a directed graph, or a circle in it.

#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace placewright::verifying {

struct WaitingOrder {
  std::vector<std::size_t> order;  // all nodes; of several candidates the smallest number first
  std::vector<std::size_t> cycle;  // or this: each node feeds the next and the last the first,
                                   // which is the smallest number
};

// `edges` are pairs (from, to) of node numbers, in any order, also several times the same.
WaitingOrder waiting_order(std::size_t nodes,
                           std::vector<std::pair<std::size_t, std::size_t>> edges);

}  // namespace placewright::verifying
