// cpsat: the whole schedule by CP-SAT (methods/schedule_program.h): exact, given time.

#include "planners/latency/latency.h"
#include "planners/methods/schedule_program.h"

namespace placewright {

PlannerEntry cpsat_schedule() {
  return PlannerEntry{.name = "cpsat",
                      .summary = "the whole schedule as a constraint program (CP-SAT)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .strength = Strength::exact,
                      .effort = Effort::anytime,
                      .knows = kScheduleProgramKnows,
                      .uses_threads = true,
                      .refuses = refuses_schedule_program,
                      .plan = [](const Problem& problem, const Settings&, Control& control) {
                        return solve_schedule_program(problem, control);
                      }};
}

}  // namespace placewright
