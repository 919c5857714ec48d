// ASWM: average speed-up, whole models (methods/whole_models.h).
//
// A baseline from the Talos paper's comparison (average speed-up with model granularity).

#include "planners/methods/whole_models.h"
#include "planners/published/published.h"

namespace placewright {

PlannerEntry aswm() {
  return PlannerEntry{.name = "aswm",
                      .summary = "whole models, each on the device of its best average speed-up",
                      .objectives = {Objective::total_completion},
                      .role = Role::published,
                      .knows = kCommonAndSharing,
                      .plan = [](const Problem& problem, const Settings&, Control& control) {
                        return models_on_their_best_devices(problem, control);
                      }};
}

}  // namespace placewright
