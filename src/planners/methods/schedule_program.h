// The whole schedule by CP-SAT (cpsat_model.h): exact, given time.
//
// The search starts from the best plan made at once (start_answer.h). CP-SAT tells nothing while it
// runs, so it runs in slices of growing length, each from the best plan and the best bound so far:
// what is lost by starting again is at most as long as the last slice. Interrupting it keeps the
// best plan of the slice.
//
// Small problems (about 30 ops) are solved to the proof in seconds: there the first slice is half
// of the time, since on a busy machine a slice of a second would end before the proof, which would
// begin again. On large ones it improves the first plan slowly. A step is 1e-5 of CP-SAT's
// deterministic seconds. Perron, Didier, Gay: The CP-SAT-LP solver, CP 2023.

#pragma once

#include <string>

#include "planners/planner.h"

namespace placewright {

// Why it cannot serve the problem; empty: it can.
inline constexpr Features kScheduleProgramKnows =
    kCommonAndSharing - Features{Feature::peak_memory};
std::string refuses_schedule_program(const Problem& problem);

Answer solve_schedule_program(const Problem& problem, Control& control);

}  // namespace placewright
