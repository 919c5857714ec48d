// Memory first: fill the first device until its memory is full, then the next, in the order of the
// model.
//
// What accelerate's automatic device map does (devices in the order given, fastest first by
// convention). It knows neither times nor links. O(ops x devices).

#include "planners/fill.h"
#include "planners/imitations/imitations.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return fill_plan(
      problem, [](const Fill&) { return false; }, control);
}

}  // namespace

PlannerEntry memory_first() {
  return PlannerEntry{.name = "memory-first",
                      .summary = "fill each device's memory in turn (accelerate's automatic map)",
                      .objectives = {Objective::throughput, Objective::call_latency,
                                     Objective::latency, Objective::total_completion},
                      .role = Role::imitation,
                      .effort = Effort::instant,
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
