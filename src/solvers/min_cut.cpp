#include "solvers/min_cut.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

namespace placewright::solvers {

double minimum_cut(int nodes, int source, int target, const std::vector<CutArc>& arcs) {
  double sum = 0;
  for (const CutArc& arc : arcs) {
    if (std::isfinite(arc.capacity)) sum += arc.capacity;
  }
  if (sum == 0) sum = 1;
  constexpr int kBits = 52;  // of the sum
  const double scale = std::exp2(kBits - std::ceil(std::log2(sum)));
  // More than all finite arcs together.
  constexpr std::int64_t kUncut = std::int64_t{1} << (kBits + 2);

  lemon::SmartDigraph graph;
  graph.reserveNode(nodes);
  for (int i = 0; i < nodes; ++i) graph.addNode();
  lemon::SmartDigraph::ArcMap<std::int64_t> capacity(graph);
  for (const CutArc& arc : arcs) {
    const auto added = graph.addArc(lemon::SmartDigraph::nodeFromId(arc.source),
                                    lemon::SmartDigraph::nodeFromId(arc.target));
    capacity[added] = std::isfinite(arc.capacity)
                          ? static_cast<std::int64_t>(std::floor(arc.capacity * scale))
                          : kUncut;
  }
  lemon::Preflow<lemon::SmartDigraph, lemon::SmartDigraph::ArcMap<std::int64_t>> preflow(
      graph, capacity, lemon::SmartDigraph::nodeFromId(source),
      lemon::SmartDigraph::nodeFromId(target));
  preflow.runMinCut();
  const std::int64_t value = preflow.flowValue();
  if (value >= kUncut) return std::numeric_limits<double>::infinity();
  return static_cast<double>(value) / scale;
}

}  // namespace placewright::solvers
