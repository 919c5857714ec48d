// How `auto` shares its time among its members: who comes when, and how long each may take.

#pragma once

#include <vector>

#include "planners/planner.h"

namespace placewright {

// Instant planners first, so that there is a plan whatever the limit; then quick ones, our own
// before those that are here for comparison; then proofs; then what goes on improving.
enum class Turn { instant, own_quick, quick, proof, improvement, portfolio };
Turn turn(const PlannerEntry& entry);

// What a member knows when its turn comes.
struct Moment {
  double elapsed = 0;       // seconds
  double left = 0;          // seconds, without the check of the plan
  bool quick_plan = false;  // the best plan so far was found by a quick planner of our own
  double claims = 0;        // of the members that are still to come, this one included
};

// The weight of its claim on the time.
double claim(const PlannerEntry& member, const Problem& problem);
// The part of the time that is left, 0 to 1.
double share(const PlannerEntry& member, const Problem& problem, const Moment& moment);
// Seconds that it may take on a tiny problem even where the limit is over.
double seconds_beyond(const PlannerEntry& member, const Problem& problem, double left);

}  // namespace placewright
