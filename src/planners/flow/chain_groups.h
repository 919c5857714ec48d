// Packing as Talos does it: neighbours in a chain become one op while the group is short.
//
// The neighbours are those of the coarsening method `chains` (coarsen/coarsening.h: speed-ups
// within the ratio of the group's first op, each op short); a group is closed as soon as its ops
// take `longest` milliseconds together on the reference kind, so that packing removes many small
// ops and leaves the large ones to be placed one by one.

#pragma once

#include "coarsen/coarsening.h"
#include "problem/problem.h"

namespace placewright {

// Ratio 1 or longest 0: every op alone.
Partition packed_chains(const Problem& problem, double speedup_ratio, double longest);

}  // namespace placewright
