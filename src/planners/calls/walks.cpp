#include "planners/calls/walks.h"

#include <algorithm>
#include <numeric>

#include "coarsen/blocks.h"
#include "planners/methods/assignment.h"
#include "planners/methods/walk_search.h"
#include "planners/random_numbers.h"

namespace placewright::calls {
namespace {

using Node = CallGraph::Node;

// Pairs of cuts are looked at, so a long order is cut at some places only.
constexpr std::size_t kMostCuts = 1500;

// Takes a ready node again and again: the one that became ready last (depth first), first (breadth
// first), or either by chance.
std::vector<Node> topological_order(const CallGraph& graph,
                                    const std::vector<std::vector<Node>>& after, double depth_share,
                                    RandomNumbers& random) {
  std::vector<std::size_t> waiting(graph.size(), 0);
  for (const auto& list : after) {
    for (const Node node : list) ++waiting[node];
  }
  std::vector<Node> ready;
  for (Node node = 0; node < graph.size(); ++node) {
    if (waiting[node] == 0) ready.push_back(node);
  }
  std::ranges::reverse(ready);
  const bool chance = depth_share > 0 && depth_share < 1;
  std::vector<Node> order;
  while (!ready.empty()) {
    std::size_t at = depth_share > 0 ? ready.size() - 1 : 0;
    if (chance && !random.chance(depth_share)) at = random.below(ready.size());
    const Node node = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    order.push_back(node);
    for (const Node next : after[node]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

// Nodes are parts of blocks, and blocks are numbered depth first.
std::vector<Node> order_of_blocks(const Problem& problem, const CallGraph& graph) {
  const Blocks blocks = blocks_of(problem);
  std::vector<Node> order(graph.size());
  std::iota(order.begin(), order.end(), Node{0});
  std::ranges::stable_sort(order, {},
                           [&](Node node) { return blocks.block_of[graph.ops[node].front()]; });
  return order;
}

}  // namespace

std::vector<std::vector<Node>> topological_orders(const CallGraph& graph, std::size_t count,
                                                  std::uint64_t seed) {
  std::vector<std::vector<Node>> after(graph.size());
  for (const CallGraph::Net& net : graph.nets) {
    for (const Node consumer : net.consumers) after[net.producer].push_back(consumer);
  }
  RandomNumbers random(seed);
  std::vector<std::vector<Node>> orders;
  for (std::size_t i = 0; i < count; ++i) {
    const double depth_share = i == 0 ? 1 : i == 1 ? 0 : 0.8;
    orders.push_back(topological_order(graph, after, depth_share, random));
  }
  return orders;
}

std::optional<Plan> best_chain(const Problem& problem, std::size_t ideal_limit, std::size_t orders,
                               Control& control) {
  CallEvaluator evaluator(problem);
  std::optional<Plan> best;
  const auto stop = [&] { return control.should_stop(); };
  const auto try_family = [&](const std::optional<CallIdeals>& family) {
    if (!family) return;
    const auto walk = walk_of_least_sum(*family, stop);
    if (!walk) return;
    const auto slots = slots_of_walk(problem, evaluator, family->graph(), *walk);
    if (!slots) return;
    auto candidate = plan_of_slots(problem, evaluator, *slots);
    if (!candidate || (best && candidate->value >= best->value)) return;
    best = std::move(candidate);
    control.report(*best, 0);
  };
  // Several calls per device may fail to be packed; one never does for lack of devices.
  std::vector<int> calls_per_device{1};
  if (problem.rules().calls_per_device > 1) {
    calls_per_device.push_back(problem.rules().calls_per_device);
  }
  for (const int calls : calls_per_device) {
    const CallGraph whole = call_graph(problem, Table<OpId, char>(problem.op_count(), 1), calls);
    auto tried = topological_orders(whole, orders, control.budget().seed);
    tried.insert(tried.begin(), order_of_blocks(problem, whole));
    for (auto& order : tried) {
      if (control.should_stop()) break;
      try_family(CallIdeals::prefixes(whole, {&order, 1}, kMostCuts, stop));
    }
    if (!control.should_stop()) try_family(finest_ideals(problem, ideal_limit, calls, stop));
  }
  return best;
}

}  // namespace placewright::calls
