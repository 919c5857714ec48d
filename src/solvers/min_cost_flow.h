// Minimum-cost flow, by LEMON's network simplex.
//
//   minimise    sum over arcs a of cost(a) f(a)
//   subject to  lower(a) <= f(a) <= capacity(a)            every arc a
//               flow out of n - flow into n = supply(n)    every node n
//
// Cost: exponential in theory, in practice close to the best known codes; memory linear in nodes
// and arcs. Limits: flows are integers, so the flow found is integral. Costs are real; inside they
// are rounded to multiples of a power of two chosen from the largest (exact for whole numbers up to
// 2^40 or so, relative error about 2^-45 at worst otherwise). No warm start and no interruption.
// Reference: Kovács, "Minimum-cost flow algorithms: an experimental evaluation", Optim. Methods
// Softw. 30 (2015).

#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace placewright::solvers {

inline constexpr std::int64_t kUnlimitedFlow = std::numeric_limits<std::int64_t>::max();

struct FlowArc {
  int source = 0;
  int target = 0;
  std::int64_t lower = 0;
  std::int64_t capacity = kUnlimitedFlow;
  double cost = 0;
};

struct FlowNetwork {
  std::vector<std::int64_t> supply;  // one per node; negative is demand
  std::vector<FlowArc> arcs;
};

enum class FlowStatus {
  optimal,
  infeasible,
  unbounded,  // a cycle of negative cost and unlimited capacity
  error,      // see `error`
};

struct FlowResult {
  FlowStatus status = FlowStatus::error;
  std::string error;
  std::vector<std::int64_t> flow;  // one per arc
  double cost = 0;
  // One per node: cost + potential[source] - potential[target] is >= 0 on arcs below their capacity
  // and <= 0 on arcs above their lower bound.
  std::vector<double> potential;
};

FlowResult min_cost_flow(const FlowNetwork& network);

}  // namespace placewright::solvers
