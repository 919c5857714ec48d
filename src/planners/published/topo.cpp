// m-TOPO: fill the devices in topological order, each up to its share of the model's memory.
//
// The share is (total bytes / devices + bytes of the largest op), as in Baechi; a model that states
// no memory is shared by the number of ops instead. O(ops x devices).
//
// Jeon et al.: Baechi: fast device placement of machine learning graphs. SoCC 2020.

#include <algorithm>
#include <cmath>

#include "planners/fill.h"
#include "planners/published/published.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings&, Control& control) {
  double total = 0;
  double largest = 0;
  for (const OpId op : problem.ops()) {
    total += problem.memory(op);
    largest = std::max(largest, problem.memory(op));
  }
  for (const SharedWeight& weight : problem.draft().shared_weights) total += weight.bytes;
  const auto devices = static_cast<double>(problem.device_count());
  const double byte_share = total / devices + largest;
  const double op_share = std::ceil(static_cast<double>(problem.op_count()) / devices);
  return fill_plan(
      problem,
      [&](const Fill& fill) {
        return total > 0 ? fill.bytes > byte_share : static_cast<double>(fill.ops) > op_share;
      },
      control);
}

}  // namespace

PlannerEntry topo() {
  return PlannerEntry{.name = "topo",
                      .summary = "balanced fill in topological order within memory (m-TOPO)",
                      .objectives = {Objective::throughput, Objective::call_latency,
                                     Objective::latency, Objective::total_completion},
                      .role = Role::published,
                      .effort = Effort::instant,
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
