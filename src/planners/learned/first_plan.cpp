#include "planners/learned/first_plan.h"

#include "planners/baselines/baselines.h"
#include "planners/imitations/imitations.h"
#include "planners/published/published.h"

namespace placewright::learned {
namespace {

enum class Wanted { any, best };

// etf looks at every ready op before it starts one: beyond this it takes longer than the network.
constexpr std::size_t kMostOpsForEtf = 5000;

std::vector<PlannerEntry> quick_planners(const Problem& problem) {
  std::vector<PlannerEntry> quick = {single(), heft(),         memory_first(),
                                     topo(),   proportional(), priority()};
  if (problem.op_count() <= kMostOpsForEtf) quick.push_back(etf());
  return quick;
}

Answer of_quick_planners(const Problem& problem, Control& control, Wanted wanted) {
  Answer answer;
  if (control.start != nullptr) answer.plan = *control.start;
  for (const PlannerEntry& quick : quick_planners(problem)) {
    if (!quick.serves(problem.objective())) continue;
    if (answer.plan && control.should_stop()) break;
    Control part = control.part(quick.name, control.remaining());
    Answer found = quick.plan(problem, Settings{quick.options}, part);
    if (found.plan ? found.value() < answer.value() : !answer.plan) answer = std::move(found);
    if (answer.plan && wanted == Wanted::any) break;
  }
  return answer;
}

}  // namespace

Answer first_plan(const Problem& problem, Control& control) {
  return of_quick_planners(problem, control, Wanted::any);
}

Answer quick_plan(const Problem& problem, Control& control) {
  return of_quick_planners(problem, control, Wanted::best);
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
