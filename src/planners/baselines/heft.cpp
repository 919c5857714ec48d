// HEFT: heterogeneous earliest finish time.
//
// Ops in order of upward rank (mean time to the end of the graph, transfers included); each goes to
// the device on which it ends first, in gaps between earlier ops where it fits. O(ops x devices)
// slot searches. A heuristic without guarantee on unrelated devices; memory is respected by leaving
// out devices without room.
//
// Where devices share resources an op that ends first takes cores from all others: there it is the best of
// several such lists (shared_lists.h), and never worse than the best single device.
//
// Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task scheduling for heterogeneous
// computing. IEEE TPDS 13(3), 2002.

#include <vector>

#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "planners/baselines/shared_lists.h"
#include "planners/device_choice.h"
#include "planners/list_schedule.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings&, Control& control) {
  if (problem.resource_count() > 0) return earliest_end_lists(problem, control);
  const std::vector<OpId> order = list_order(problem, upward_ranks(problem));
  return construct(problem, control, [&](DeviceChoice& choice) {
    return earliest_end_plan(problem, order, choice, control);
  });
}

}  // namespace

PlannerEntry heft() {
  return PlannerEntry{
      .name = "heft",
      .summary = "upward rank, then the device where the op ends first (HEFT, insertion based)",
      .objectives = {Objective::latency, Objective::total_completion},
      .knows_sharing = true,
      .plan = plan};
}

}  // namespace placewright
