// The configuration bound: a lower bound of the throughput objective that assumes no contiguity.
//
// A plan of value T covers the blocks by one set for each device, each of load at most T. So for
// any prizes w >= 0 on the blocks
//
//   sum of w(v)  <=  sum over classes c of devices(c) x (best prize of a set with load_c <= T)
//
// and the least T for which this holds is a lower bound. Unlike the linear relaxation, in which
// every block is everywhere in equal parts and no tensor moves, the sets here are whole and pay for
// their transfers. The best prizes solve the linear program over all sets (bin packing's
// configuration program, Gilmore and Gomory 1961): sets are generated as they are needed by
// ColumnSearch, prizes come from HiGHS, smoothed towards the best known (Wentges 1997), and are
// rounded to whole numbers, with which the inequality holds all the same. The value T to be
// disproved is bisected.
//
// Some tens to hundreds of searches. Weak where a graph is so wide that ColumnSearch must leave
// nets out, and where memory binds.

#pragma once

#include <vector>

#include "planners/methods/stage_model.h"
#include "planners/planner.h"

namespace placewright::throughput {

// Between `lowest`, which is known to be a bound, and `highest`, the value of a known plan. The
// model's blocks may be any whose joining loses nothing. Nothing better than `lowest` where the
// model is phased, has replicas, or has more than some thousand blocks. `most_states` limits
// ColumnSearch.
double configuration_bound(const StageModel& model, double lowest, double highest, Control& control,
                           std::size_t most_states = 64);

}  // namespace placewright::throughput
