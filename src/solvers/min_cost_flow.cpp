#include "solvers/min_cost_flow.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>

namespace placewright::solvers {
namespace {

using Graph = lemon::SmartDigraph;
using Simplex = lemon::NetworkSimplex<Graph, std::int64_t, std::int64_t>;

// Sums of amounts stay below this, far from overflow inside the simplex.
constexpr double kLargestTotal = 0x1p61;

std::optional<std::string> find_fault(const FlowNetwork& network) {
  const auto nodes = static_cast<int>(network.supply.size());
  double total = 0;
  for (const std::int64_t supply : network.supply) total += std::abs(static_cast<double>(supply));
  for (std::size_t i = 0; i < network.arcs.size(); ++i) {
    const FlowArc& arc = network.arcs[i];
    const std::string name = "arc " + std::to_string(i);
    if (arc.source < 0 || arc.source >= nodes || arc.target < 0 || arc.target >= nodes) {
      return name + " leaves the network";
    }
    if (!std::isfinite(arc.cost)) return name + " has no finite cost";
    total += std::abs(static_cast<double>(arc.lower));
    if (arc.capacity != kUnlimitedFlow) total += std::abs(static_cast<double>(arc.capacity));
  }
  if (total >= kLargestTotal) return "the supplies and capacities are too large to add up";
  return std::nullopt;
}

// Proofs that need no simplex. Network simplex itself wants balanced supplies and sane bounds.
bool is_plainly_infeasible(const FlowNetwork& network) {
  std::int64_t balance = 0;
  for (const std::int64_t supply : network.supply) balance += supply;
  return balance != 0 || std::any_of(network.arcs.begin(), network.arcs.end(),
                                     [](const FlowArc& arc) { return arc.lower > arc.capacity; });
}

// The power of two that turns costs into integers: as fine as a potential, a sum of up to `nodes`
// costs, allows; no finer than 1 when all costs are whole numbers already.
double cost_scale(const FlowNetwork& network) {
  double largest = 0;
  bool whole = true;
  for (const FlowArc& arc : network.arcs) {
    largest = std::max(largest, std::abs(arc.cost));
    whole = whole && arc.cost == std::floor(arc.cost);
  }
  if (largest == 0) return 1;
  const double room = 0x1p60 / (static_cast<double>(network.supply.size()) + 1);
  if (whole && largest <= room) return 1;
  return std::exp2(std::floor(std::log2(room / largest)));
}

}  // namespace

FlowResult min_cost_flow(const FlowNetwork& network) {
  FlowResult result;
  if (const auto fault = find_fault(network)) {
    result.error = *fault;
    return result;
  }
  if (is_plainly_infeasible(network)) {
    result.status = FlowStatus::infeasible;
    return result;
  }
  if (network.supply.empty()) {
    result.status = FlowStatus::optimal;
    return result;
  }

  const double scale = cost_scale(network);
  Graph graph;
  graph.reserveNode(static_cast<int>(network.supply.size()));
  graph.reserveArc(static_cast<int>(network.arcs.size()));
  Graph::NodeMap<std::int64_t> supply(graph);
  for (const std::int64_t amount : network.supply) supply[graph.addNode()] = amount;
  Graph::ArcMap<std::int64_t> lower(graph);
  Graph::ArcMap<std::int64_t> upper(graph);
  Graph::ArcMap<std::int64_t> cost(graph);
  for (const FlowArc& arc : network.arcs) {
    const auto added = graph.addArc(graph.nodeFromId(arc.source), graph.nodeFromId(arc.target));
    lower[added] = arc.lower;
    upper[added] = arc.capacity;
    cost[added] = std::llround(arc.cost * scale);
  }

  Simplex simplex(graph);
  simplex.supplyMap(supply).lowerMap(lower).upperMap(upper).costMap(cost);
  switch (simplex.run()) {
    case Simplex::INFEASIBLE:
      result.status = FlowStatus::infeasible;
      return result;
    case Simplex::UNBOUNDED:
      result.status = FlowStatus::unbounded;
      return result;
    case Simplex::OPTIMAL:
      break;
  }
  result.status = FlowStatus::optimal;
  result.flow.reserve(network.arcs.size());
  for (std::size_t i = 0; i < network.arcs.size(); ++i) {
    result.flow.push_back(simplex.flow(graph.arcFromId(static_cast<int>(i))));
    result.cost += static_cast<double>(result.flow.back()) * network.arcs[i].cost;
  }
  result.potential.reserve(network.supply.size());
  for (std::size_t i = 0; i < network.supply.size(); ++i) {
    const auto node = graph.nodeFromId(static_cast<int>(i));
    result.potential.push_back(static_cast<double>(simplex.potential(node)) / scale);
  }
  return result;
}

}  // namespace placewright::solvers
