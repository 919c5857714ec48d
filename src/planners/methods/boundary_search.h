// The search over boundaries: whether some jointly contiguous pipeline stays within a value T, for
// graphs with too many down-sets to list.
//
// Of a pipeline on k devices that are alike, look at the boundary behind the first i of them: a
// down-set M. The loads on either side are at most i T and (k - i) T, and every tensor that crosses
// the boundary is paid for on both sides. So
//
//   work of M <= i T,   work of the rest <= (k - i) T,   2 x tensors that cross <= k T - all work
//
// and while T is close to the work bound, few down-sets cross so little: 151 of the billions that a
// layered graph of 100 ops has, or none, which proves that no plan is within T. They are enumerated
// by "take v with its ancestors / drop v with its descendants", and a branch is left when the
// largest flow from what is taken to what is dropped exceeds what may cross: it is the least cost
// of the boundaries that are left in it. (Flows go on from those of the branch above.)
//
// Each boundary found leaves two smaller questions of the same form, blocks between two down-sets
// on fewer devices, with less to spend. The boundary with the fewest candidates is chosen first,
// and intervals that were refuted are remembered. So the search is complete: it finds a split
// within T or proves that there is none.
//
// Times are rounded down to whole numbers, so a refutation holds; a split found may be above T by
// that rounding. Time grows steeply with the distance of T from the work bound; memory is at most
// some 100 MB for candidates and refuted intervals. Devices of one class with a single sum of
// transfers; their memory is looked at when a stage is complete. On links the loads are the model's
// lower bounds.
//
// Reference: bounds by flows in a search for small balanced cuts as in D. Delling et al., "Exact
// Combinatorial Branch-and-Bound for Graph Bisection", ALENEX 2012.

#pragma once

#include <optional>
#include <string>

#include "planners/methods/ideal_program.h"
#include "planners/methods/stage_model.h"
#include "planners/planner.h"

namespace placewright::throughput {

// Why it cannot search the model; empty: it can.
std::string refuses_boundary_search(const StageModel& model);

// Complete: the split, or the proof that none has a value below `cutoff`. The split's value is not
// filled in. Incomplete when asked to stop, or if each boundary has more candidates than memory.
ProgramResult split_within(const StageModel& model, double cutoff, Control& control);

}  // namespace placewright::throughput
