// Plans made at once by filling devices (fill.h), under every objective. None looks at times or
// links.
//
//   fill_in_turn        The first device until its memory is full, then the next, in the order of
//                       the model.
//   fill_evenly         Each device up to its share of the model's memory: (total bytes / devices +
//                       bytes of the largest op); a model that states no memory is shared by the
//                       number of ops instead.
//   fill_in_proportion  As many ops in a row on each device as its share of all memory. Devices
//                       with unlimited memory count as the largest limited one.
//   first_that_fits     Every op on the first device in the cluster's order that supports it and
//                       has room. Where contiguous sets are asked for, devices are taken in that
//                       order along the graph and never left and come back to.
//
// O(ops x devices).

#pragma once

#include "planners/planner.h"

namespace placewright {

Answer fill_in_turn(const Problem& problem, Control& control);
Answer fill_evenly(const Problem& problem, Control& control);
Answer fill_in_proportion(const Problem& problem, Control& control);
Answer first_that_fits(const Problem& problem, Control& control);

}  // namespace placewright
