// The planner `auto`: runs the other planners that fit within one budget and keeps the best.
//
// Order: instant planners, so that there is a plan whatever the limit; quick heuristics, our own
// first; exact planners; then those that improve as long as there is time. A later planner starts
// from the best plan so far. Instant planners and quick ones of our own may take all the time that
// is left, until one of the quick has found the best plan; from then on a quick planner is stopped
// when it takes far longer than those before it. The others get their share (PlannerEntry::share)
// of what is left, so that what a quick planner does not use goes to the long ones; on small
// problems an exact one gets half of it. It ends as soon as the best plan meets the best bound, or
// one planner proves that nothing fits.
//
// Published planners that take all the time they are given are left out: they are there for
// comparison, and a planner of ours does the same better.
//
// The bound is the best of all planners' bounds. Members are checked by the verifier one by one, in
// time that is kept back for it. A member that makes a wrong plan, claims a false proof, throws or
// runs out of memory is told in a note (Control::note) and the rest goes on. Where every plan was
// wrong, and in debug builds at once, it throws WrongPlan.
//
// With several threads the members run side by side (side_by_side.h). With a step limit each has
// the whole of it and they run in turn on one thread, so that the answer is repeatable.

#pragma once

#include <vector>

#include "planners/registry.h"

namespace placewright {

// In the order in which those who run several planners run them.
std::vector<const PlannerEntry*> in_order_of_effort(std::vector<const PlannerEntry*> planners);

// `auto` over the planners that are in the registry now.
PlannerEntry portfolio(const Registry& members);

// All families and `auto`: what front ends use.
Registry planning_registry();

}  // namespace placewright
