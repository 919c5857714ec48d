// List schedules on devices that share resources, and the best of a few (`latency`,
// `total-completion`).
//
// Sets of cores are nested, so an op has to be given as many cores as it is worth: on all of them
// it ends first, and all others wait (moldable tasks). Four things a list with earliest ends does
// not see:
//
//   energy   What an op takes away from others. An op goes to the device with the least
//                end + w energy(op, device) / capacity,   energy = time x share x amount (bounds/pools.h),
//            w = 0: HEFT; w = 1: the time that all cores together lose. Where there are enough ops to run
//            side by side a larger w is better, in a chain 0 is.
//   shares   Ops of a model that are ready together divide the cores in proportion to their work, since
//            none of them is there to be seen when the first of them takes all.
//   order    Of several models one after the other (Smith's rule), where upward ranks mix them and all are
//            complete at the end.
//   single   The whole on one device, which is what cuts at a price end in.
//
// What cuts cost by the placement so far is part of an end (evaluate/partial_schedule.h). Some
// twenty passes of HEFT, or five of ETF: O(ops x devices) slot searches each, and half of the time
// given at most, so that those who improve plans have the rest. Nothing is proved. Allotments that
// weigh energy against the end are from Turek, Wolf, Yu: Approximate algorithms for scheduling
// parallelizable tasks, SPAA 1992; Radulescu, van Gemund: A low-cost approach towards mixed task
// and data parallel scheduling, ICPP 2001.

#pragma once

#include "planners/planner.h"

namespace placewright {

// Each op in the order of the list, where it ends first: the lists of `heft`.
Answer earliest_end_lists(const Problem& problem, Control& control);

// The ready op with the earliest start: the lists of `etf`.
Answer earliest_start_lists(const Problem& problem, Control& control);

}  // namespace placewright
