#include "planners/methods/quick_plans.h"

#include <vector>

#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/methods/shared_lists.h"

namespace placewright {

Answer earliest_end_list(const Problem& problem, Control& control) {
  if (problem.resource_count() > 0) return earliest_end_lists(problem, control);
  const std::vector<OpId> order = list_order(problem, upward_ranks(problem));
  return construct(problem, control, [&](DeviceChoice& choice) {
    return earliest_end_plan(problem, order, choice, control);
  });
}

Answer earliest_start_list(const Problem& problem, Control& control) {
  if (problem.resource_count() > 0) return earliest_start_lists(problem, control);
  const Table<OpId, double> ranks = upward_ranks(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    return earliest_start_plan(problem, ranks, choice, control);
  });
}

}  // namespace placewright
