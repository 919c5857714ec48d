// Makes a proposed partition one that can be contracted without breaking the promise of
// coarsening.h: splits sets until it can.

#pragma once

#include "coarsen/coarsening.h"

namespace placewright {

// Sets are numbered by their first op; each is a set of ops that may become one op, and the graph
// of the sets is acyclic.
Partition refined(const Problem& problem, const Partition& proposal);

// The sets whose readers would take in a tensor that others take in in the fine problem, for its
// overhead or for the memory space that they share, are split up; the same partition if there are
// none.
Partition without_moved_receivers(const Problem& fine, const Problem& coarse, Partition partition);

// Every op alone.
Partition separate(const Problem& problem);

}  // namespace placewright
