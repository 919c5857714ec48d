// TSAM: transient speed-up (methods/transient_rule.h). A baseline from the Talos paper.

#include "planners/methods/transient_rule.h"
#include "planners/published/published.h"

namespace placewright {

PlannerEntry tsam() {
  return PlannerEntry{.name = "tsam",
                      .summary = "the ready op and free device with the largest speed-up, at once",
                      .objectives = {Objective::total_completion},
                      .role = Role::published,
                      .knows = kCommonAndSharing,
                      .plan = [](const Problem& problem, const Settings&, Control& control) {
                        return largest_speed_ups_first(problem, control);
                      }};
}

}  // namespace placewright
