// The planners that make their plan at once: single, heft, lists and etf (methods/quick_plans.h has
// what each does). Searches start from the same plans.

#include "planners/baselines/baselines.h"
#include "planners/methods/quick_plans.h"

namespace placewright {
namespace {

PlannerEntry list_entry(const char* name, const char* summary, QuickPlan* quick) {
  return PlannerEntry{.name = name,
                      .summary = summary,
                      .objectives = {Objective::latency, Objective::total_completion},
                      .knows = kCommonAndSharing,
                      .plan = [quick](const Problem& problem, const Settings&, Control& control) {
                        return quick(problem, control);
                      }};
}

}  // namespace

PlannerEntry single() {
  PlannerEntry made =
      list_entry("single", "the whole model on the best single device", best_single_device);
  made.objectives = every_objective();
  made.role = Role::yardstick;
  return made;
}

PlannerEntry heft() {
  return list_entry("heft",
                    "upward rank, then the device where the op ends first (HEFT, insertion based)",
                    earliest_end_list);
}

PlannerEntry lists() {
  return list_entry("lists", "HEFT with prices of time and on fewer devices: the best list",
                    best_list);
}

PlannerEntry etf() {
  return list_entry("etf", "the ready op and device with the earliest start (m-ETF)",
                    earliest_start_list);
}

}  // namespace placewright
