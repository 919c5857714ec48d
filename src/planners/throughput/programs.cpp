// ip-contiguous, ip: the published integer program, on HiGHS. cpsat: the same on CP-SAT, for every
// contiguity rule.
//
// All start from the best contiguous plan that `ideals` finds in a tenth of the time (a plan under
// every rule), so they are never worse than it; --option warm-start=off leaves that out, as the
// publication does. The program is placement_program.h. Exact when given time; in practice for some
// hundred blocks and less than ten devices. CP-SAT is the stronger one by far.

#include "planners/throughput/placement_program.h"
#include "planners/throughput/program_solvers.h"
#include "planners/throughput/throughput.h"
#include "solvers/cp_sat.h"

namespace placewright {
namespace {

using namespace throughput;

using Solve = ProgramOutcome (*)(const Problem&, Incumbent&, Control&);

Answer run(const Problem& problem, const Settings& settings, Control& control, Solve solve) {
  Incumbent incumbent(problem, control);
  if (settings.flag("warm-start")) incumbent.take_contiguous_plan(0.1);
  ProgramOutcome outcome;
  if (control.should_stop(1)) {
    outcome.reason = control.stop_reason();
  } else {
    outcome = solve(problem, incumbent, control);
  }
  return incumbent.answer(outcome.reason, outcome.infeasible);
}

PlannerEntry entry(std::string name, std::string summary, Solve solve) {
  return PlannerEntry{
      .name = std::move(name),
      .summary = std::move(summary),
      .objectives = {Objective::throughput},
      .strength = Strength::exact,
      .effort = Effort::anytime,
      .options = {{"warm-start", "start from the best contiguous plan", true}},
      .refuses = refuses_program,
      .plan = [solve](const Problem& problem, const Settings& settings, Control& control) {
        return run(problem, settings, control, solve);
      }};
}

}  // namespace

PlannerEntry ip_contiguous() {
  PlannerEntry made = entry("ip-contiguous", "integer program for contiguous pipelines, on HiGHS",
                            solve_with_highs);
  made.effort = Effort::published;
  made.refuses = [](const Problem& problem) {
    return problem.rules().contiguity == Contiguity::none
               ? std::string{"it makes contiguous plans; use 'ip'"}
               : refuses_program(problem);
  };
  return made;
}

PlannerEntry ip() {
  PlannerEntry made =
      entry("ip", "integer program for pipelines that need not be contiguous, on HiGHS",
            solve_with_highs);
  made.effort = Effort::published;
  made.refuses = [](const Problem& problem) {
    return problem.rules().contiguity != Contiguity::none
               ? std::string{"it ignores contiguity; use 'ip-contiguous', or ask for --contiguity none"}
               : refuses_program(problem);
  };
  return made;
}

PlannerEntry cpsat_throughput() {
  PlannerEntry made = entry(
      "cpsat", "constraint program for pipelines, contiguous or not, on CP-SAT", solve_with_cp_sat);
  made.share = 0.25;  // 'ideals' and 'refine' turn to CP-SAT themselves where it helps
  made.refuses = [](const Problem& problem) {
    return solvers::cp_sat_available() ? refuses_program(problem)
                                       : "CP-SAT cannot be loaded: " + solvers::cp_sat_load_error();
  };
  return made;
}

}  // namespace placewright
