// m-ETF: earliest task first within memory.
//
// Again and again, of all ready ops and devices with memory left, the pair with the earliest start;
// ties by upward rank (list_schedule.h). Where devices share resources it is the best of several such lists
// (shared_lists.h), and never worse than the best single device.
//
// Without memory limits and with equal devices ETF is within (2 - 1/n) of the optimum without
// communication plus the longest communication chain (Hwang, Chow, Anger, Lee 1989); m-ETF is from
// Jeon et al., Baechi, SoCC 2020.

#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "planners/baselines/shared_lists.h"
#include "planners/device_choice.h"
#include "planners/list_schedule.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings&, Control& control) {
  if (problem.resource_count() > 0) return earliest_start_lists(problem, control);
  const Table<OpId, double> ranks = upward_ranks(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    return earliest_start_plan(problem, ranks, choice, control);
  });
}

}  // namespace

PlannerEntry etf() {
  return PlannerEntry{.name = "etf",
                      .summary = "the ready op and device with the earliest start (m-ETF)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .knows_sharing = true,
                      .plan = plan};
}

}  // namespace placewright
