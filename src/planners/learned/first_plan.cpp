#include "planners/learned/first_plan.h"

#include "planners/baselines/baselines.h"
#include "planners/imitations/imitations.h"
#include "planners/published/published.h"

namespace placewright::learned {

Answer first_plan(const Problem& problem, Control& control) {
  Answer answer;
  if (control.start != nullptr) answer.plan = *control.start;
  for (const PlannerEntry& quick :
       {single(), heft(), memory_first(), topo(), proportional(), priority(), etf()}) {
    if (!quick.serves(problem.objective())) continue;
    Control part = control.part(quick.name, control.remaining());
    Answer found = quick.plan(problem, Settings{quick.options}, part);
    if (!found.plan && !answer.plan) answer = std::move(found);
    if (found.plan && found.value() < answer.value()) answer = std::move(found);
    if (answer.plan) break;
  }
  return answer;
}

Placement heft_placement(const Problem& problem, Control& control) {
  const PlannerEntry planner = heft();
  if (planner.serves(problem.objective())) {
    Control part = control.part(planner.name, control.remaining());
    Answer found = planner.plan(problem, Settings{planner.options}, part);
    if (found.plan) return std::move(found.plan->placement);
  }
  return Placement(problem.op_count());
}

}  // namespace placewright::learned
