// local-search: from random pipelines, the best move of one colour class until none helps; ten
// restarts (methods/descent.h). A baseline.
//
// Reference: J. Tarnawski et al., NeurIPS 2020, "local search".

#include "planners/methods/descent.h"
#include "planners/published/published.h"
#include "planners/refusals.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  throughput::Incumbent incumbent(problem, control);
  throughput::descend_from_random_pipelines(problem, settings.integer("restarts"), incumbent,
                                            control);
  return incumbent.answer(control.should_stop() ? control.stop_reason()
                                                : "no random pipeline kept all the rules");
}

}  // namespace

PlannerEntry local_search() {
  return PlannerEntry{
      .name = "local-search",
      .summary = "best move of one colour class from random pipelines, with restarts",
      .objectives = {Objective::throughput},
      .role = Role::published,
      .knows = kCommonFeatures - Features{Feature::peak_memory},
      .options = {{"restarts", "random starts", std::int64_t{10}, 1, 1e6}},
      .plan = plan};
}

}  // namespace placewright
