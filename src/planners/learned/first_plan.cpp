#include "planners/learned/first_plan.h"

#include "planners/methods/fill_rules.h"
#include "planners/methods/quick_plans.h"

namespace placewright::learned {
namespace {

enum class Wanted { any, best };

// etf looks at every ready op before it starts one: beyond this it takes longer than the network.
constexpr std::size_t kMostOpsForEtf = 5000;

std::vector<QuickPlan*> quick_plans(const Problem& problem) {
  std::vector<QuickPlan*> quick = {best_single_device};
  const bool schedule = is_schedule(problem.objective());
  if (schedule) quick.push_back(earliest_end_list);
  quick.insert(quick.end(), {fill_in_turn, fill_evenly, fill_in_proportion, first_that_fits});
  if (schedule && problem.op_count() <= kMostOpsForEtf) quick.push_back(earliest_start_list);
  return quick;
}

Answer of_quick_planners(const Problem& problem, Control& control, Wanted wanted) {
  Answer answer;
  if (control.start != nullptr) answer.plan = *control.start;
  for (QuickPlan* const quick : quick_plans(problem)) {
    if (answer.plan && control.should_stop()) break;
    Control part = control.part("first plan", control.remaining());
    Answer found = quick(problem, part);
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
  if (is_schedule(problem.objective())) {
    Control part = control.part("heft", control.remaining());
    Answer found = earliest_end_list(problem, part);
    if (found.plan) return std::move(found.plan->placement);
  }
  return Placement(problem.op_count());
}

}  // namespace placewright::learned
