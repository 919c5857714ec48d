#include "solvers/graph_partition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include <scotch.h>

// Scotch lets the program bring its own error handlers. The stock ones print to stderr; a library
// must not.
extern "C" {
void SCOTCH_errorProg(const char* /*program*/) {}
void SCOTCH_errorPrint(const char* /*format*/, ...) {}
void SCOTCH_errorPrintW(const char* /*format*/, ...) {}
}

namespace placewright::solvers {
namespace {

// Sums of scaled weights stay below this, within Scotch's 32-bit numbers with room for its own
// sums.
constexpr double kScaledTotal = 0x1p28;
constexpr std::size_t kLargestCount = std::size_t{1} << 27;

bool is_weight(double weight) {
  return std::isfinite(weight) && weight >= 0;
}

std::optional<std::string> find_fault(const PartitionGraph& graph,
                                      const PartitionOptions& options) {
  const auto nodes = static_cast<int>(graph.node_weight.size());
  if (graph.node_weight.size() > kLargestCount || graph.edges.size() > kLargestCount) {
    return "the graph is too large for Scotch";
  }
  if (options.parts < 1) return "at least one part is needed";
  if (!options.shares.empty() && options.shares.size() != static_cast<std::size_t>(options.parts)) {
    return "there must be one share for each part";
  }
  for (const double share : options.shares) {
    if (!std::isfinite(share) || share <= 0) return "a share is not a positive number";
  }
  if (!is_weight(options.imbalance)) return "the imbalance is not a number >= 0";
  for (std::size_t i = 0; i < graph.node_weight.size(); ++i) {
    if (!is_weight(graph.node_weight[i])) {
      return "the weight of node " + std::to_string(i) + " is not a number >= 0";
    }
  }
  for (std::size_t i = 0; i < graph.edges.size(); ++i) {
    const PartitionEdge& edge = graph.edges[i];
    if (edge.a < 0 || edge.a >= nodes || edge.b < 0 || edge.b >= nodes) {
      return "edge " + std::to_string(i) + " leaves the graph";
    }
    if (!is_weight(edge.weight)) {
      return "the weight of edge " + std::to_string(i) + " is not a number >= 0";
    }
  }
  return std::nullopt;
}

// Integers in proportion to the weights, each at least `least`, whose sum is about kScaledTotal.
std::vector<SCOTCH_Num> scaled(const std::vector<double>& weights, double least) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<SCOTCH_Num> result;
  result.reserve(weights.size());
  for (const double weight : weights) {
    const double share = total > 0 ? weight / total * kScaledTotal : 1;
    result.push_back(static_cast<SCOTCH_Num>(std::max(least, std::round(share))));
  }
  return result;
}

// The graph as Scotch reads it: each edge from both of its ends.
struct Adjacency {
  std::vector<SCOTCH_Num> begin, neighbour, node_load, edge_load;
};

Adjacency to_adjacency(const PartitionGraph& graph) {
  std::map<std::pair<int, int>, double> merged;
  for (const PartitionEdge& edge : graph.edges) {
    if (edge.a != edge.b) merged[std::minmax({edge.a, edge.b})] += edge.weight;
  }
  std::vector<double> weights;
  weights.reserve(merged.size());
  for (const auto& [ends, weight] : merged) weights.push_back(weight);
  const std::vector<SCOTCH_Num> loads = scaled(weights, 1);  // Scotch wants positive edge loads

  const std::size_t nodes = graph.node_weight.size();
  Adjacency result;
  result.node_load = scaled(graph.node_weight, 0);
  result.begin.assign(nodes + 1, 0);
  for (const auto& [ends, weight] : merged) {
    ++result.begin[static_cast<std::size_t>(ends.first) + 1];
    ++result.begin[static_cast<std::size_t>(ends.second) + 1];
  }
  std::partial_sum(result.begin.begin(), result.begin.end(), result.begin.begin());
  result.neighbour.resize(2 * merged.size());
  result.edge_load.resize(2 * merged.size());
  std::vector<SCOTCH_Num> next(result.begin.begin(), result.begin.end() - 1);
  std::size_t index = 0;
  for (const auto& [ends, weight] : merged) {
    for (const auto& [from, to] : {ends, std::pair(ends.second, ends.first)}) {
      const auto slot = static_cast<std::size_t>(next[static_cast<std::size_t>(from)]++);
      result.neighbour[slot] = to;
      result.edge_load[slot] = loads[index];
    }
    ++index;
  }
  return result;
}

// Scotch's objects, released in the end whatever happens.
struct Objects {
  SCOTCH_Context context;
  SCOTCH_Graph graph;
  SCOTCH_Graph in_context;
  SCOTCH_Arch target;
  SCOTCH_Strat strategy;

  Objects() {
    SCOTCH_contextInit(&context);
    SCOTCH_graphInit(&graph);
    SCOTCH_graphInit(&in_context);
    SCOTCH_archInit(&target);
    SCOTCH_stratInit(&strategy);
  }
  ~Objects() {
    SCOTCH_stratExit(&strategy);
    SCOTCH_archExit(&target);
    SCOTCH_graphExit(&in_context);
    SCOTCH_graphExit(&graph);
    SCOTCH_contextExit(&context);
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
};

// Whether Scotch succeeded; fills `part`. In one thread: those that Scotch makes by itself spin
// while they wait for each other, for minutes on a busy machine.
bool run_scotch(const Adjacency& adjacency, const PartitionOptions& options,
                std::vector<SCOTCH_Num>& part) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const std::vector<double> equal(static_cast<std::size_t>(options.parts), 1.0);
  const std::vector<double>& shares = options.shares.empty() ? equal : options.shares;
  const double largest = *std::max_element(shares.begin(), shares.end());
  std::vector<SCOTCH_Num> sizes;
  sizes.reserve(shares.size());
  for (const double share : shares) {
    sizes.push_back(static_cast<SCOTCH_Num>(std::max(1.0, std::round(share / largest * 0x1p16))));
  }

  Objects objects;
  const auto nodes = static_cast<SCOTCH_Num>(adjacency.node_load.size());
  const auto arcs = static_cast<SCOTCH_Num>(adjacency.neighbour.size());
  if (SCOTCH_contextThreadSpawn(&objects.context, 1, nullptr) != 0 ||
      SCOTCH_contextRandomClone(&objects.context) != 0) {
    return false;
  }
  SCOTCH_contextRandomSeed(&objects.context, static_cast<SCOTCH_Num>(options.seed & 0x7fffffffU));
  SCOTCH_contextRandomReset(&objects.context);
  return SCOTCH_graphBuild(&objects.graph, 0, nodes, adjacency.begin.data(), nullptr,
                           adjacency.node_load.data(), nullptr, arcs, adjacency.neighbour.data(),
                           adjacency.edge_load.data()) == 0 &&
         SCOTCH_archCmpltw(&objects.target, options.parts, sizes.data()) == 0 &&
         SCOTCH_stratGraphMapBuild(&objects.strategy, SCOTCH_STRATQUALITY, options.parts,
                                   options.imbalance) == 0 &&
         SCOTCH_contextBindGraph(&objects.context, &objects.graph, &objects.in_context) == 0 &&
         SCOTCH_graphMap(&objects.in_context, &objects.target, &objects.strategy, part.data()) == 0;
}

}  // namespace

PartitionResult partition_graph(const PartitionGraph& graph, const PartitionOptions& options) {
  PartitionResult result;
  if (auto fault = find_fault(graph, options)) {
    result.error = std::move(*fault);
    return result;
  }
  const std::size_t nodes = graph.node_weight.size();
  std::vector<SCOTCH_Num> part(nodes, 0);
  if (nodes > 0 && options.parts > 1 && !run_scotch(to_adjacency(graph), options, part)) {
    result.error = "Scotch could not partition the graph";
    return result;
  }
  result.part.assign(part.begin(), part.end());
  for (const PartitionEdge& edge : graph.edges) {
    if (result.part[static_cast<std::size_t>(edge.a)] !=
        result.part[static_cast<std::size_t>(edge.b)]) {
      result.cut += edge.weight;
    }
  }
  return result;
}

}  // namespace placewright::solvers
