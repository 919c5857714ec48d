// cpsat: the placement program (placement_program.h) on CP-SAT, for every contiguity rule. On HiGHS
// it is `ip` and `ip-contiguous` (published/ip.cpp); CP-SAT is the stronger one by far.

#include "planners/methods/placement_program.h"
#include "planners/methods/program_solvers.h"
#include "planners/throughput/throughput.h"
#include "solvers/cp_sat.h"

namespace placewright {

using namespace throughput;

PlannerEntry cpsat_throughput() {
  PlannerEntry made = program_entry(
      "cpsat", "constraint program for pipelines, contiguous or not, on CP-SAT", solve_with_cp_sat);
  made.uses_threads = true;
  made.share = 0.25;  // 'ideals' and 'refine' turn to CP-SAT themselves where it helps
  made.refuses = [](const Problem&) {
    return solvers::cp_sat_available() ? std::string{}
                                       : "CP-SAT cannot be loaded: " + solvers::cp_sat_load_error();
  };
  return made;
}

}  // namespace placewright
