// m-TOPO: fill the devices in topological order, each up to its share of the model's memory
// (methods/fill_rules.h).
//
// Jeon et al.: Baechi: fast device placement of machine learning graphs. SoCC 2020.

#include "planners/methods/fill_rules.h"
#include "planners/published/published.h"

namespace placewright {

PlannerEntry topo() {
  return PlannerEntry{.name = "topo",
                      .summary = "balanced fill in topological order within memory (m-TOPO)",
                      .objectives = every_objective(),
                      .role = Role::published,
                      .effort = Effort::instant,
                      .knows = kCommonAndSharing,
                      .plan = [](const Problem& problem, const Settings&, Control& control) {
                        return fill_evenly(problem, control);
                      }};
}

}  // namespace placewright
