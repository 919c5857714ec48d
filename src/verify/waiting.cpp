#include "verify/waiting.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace placewright::verifying {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

// Every node that still waits has a waiting predecessor, so walking back must come to a node again.
std::vector<std::size_t> find_cycle(const std::vector<Edge>& edges,
                                    const std::vector<std::size_t>& waits_for) {
  std::vector<std::size_t> predecessor(waits_for.size(), waits_for.size());
  std::size_t node = 0;
  for (const auto& [from, to] : edges) {
    if (waits_for[from] == 0 || waits_for[to] == 0) continue;
    predecessor[to] = from;
    node = to;
  }
  std::vector<char> visited(waits_for.size(), 0);
  while (visited[node] == 0) {
    visited[node] = 1;
    node = predecessor[node];
  }
  std::vector<std::size_t> cycle{node};
  for (std::size_t at = predecessor[node]; at != node; at = predecessor[at]) cycle.push_back(at);
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace

WaitingOrder waiting_order(std::size_t nodes, std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end());
  std::vector<std::size_t> waits_for(nodes, 0);
  for (const Edge& edge : edges) ++waits_for[edge.second];

  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (waits_for[node] == 0) ready.push(node);
  }
  WaitingOrder result;
  result.order.reserve(nodes);
  while (!ready.empty()) {
    const std::size_t node = ready.top();
    ready.pop();
    result.order.push_back(node);
    const auto begin = std::lower_bound(edges.begin(), edges.end(), Edge{node, 0});
    for (auto edge = begin; edge != edges.end() && edge->first == node; ++edge) {
      if (--waits_for[edge->second] == 0) ready.push(edge->second);
    }
  }
  if (result.order.size() < nodes) result = {{}, find_cycle(edges, waits_for)};
  return result;
}

}  // namespace placewright::verifying
