// ip-contiguous, ip: the published integer program (methods/placement_program.h), on HiGHS.
//
// Exact when given time; in practice for some hundred blocks and less than ten devices. They begin
// with the best contiguous plan that `ideals` finds (program_solvers.h), which HiGHS is not told;
// the publication does not, and --option warm-start=off leaves it out.
//
// Reference: J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020.

#include "planners/methods/placement_program.h"
#include "planners/methods/program_solvers.h"
#include "planners/published/published.h"

namespace placewright {

using namespace throughput;

PlannerEntry ip_contiguous() {
  PlannerEntry made = program_entry(
      "ip-contiguous", "integer program for contiguous pipelines, on HiGHS", solve_with_highs);
  made.role = Role::published;
  made.knows = kProgramKnows - Features{Feature::free_sets};
  return made;
}

PlannerEntry ip() {
  PlannerEntry made =
      program_entry("ip", "integer program for pipelines that need not be contiguous, on HiGHS",
                    solve_with_highs);
  made.role = Role::published;
  made.knows = kProgramKnows - Features{Feature::joint_sets, Feature::convex_sets};
  return made;
}

}  // namespace placewright
