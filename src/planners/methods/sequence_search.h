// Anytime local search over placement, order and transfer order (`latency`, `total-completion`).
//
// Starts from the plan given, or from the best of the quick planners, goes down from there, then
// anneals in cycles of growing length, each from the best sequence so far (sweep.h has the moves
// and their cost, which does not grow with the graph). Threads run cycles of their own and share
// the best. Where the graph is so large that few sweeps fit into the time, each window is annealed
// by itself instead, and threads share the windows. It ends with the time; it proves nothing.

#pragma once

#include <cstddef>

#include "planners/planner.h"

namespace placewright {

struct SequenceSearch {
  std::size_t trials = 256;  // moves tried in each window of a sweep
  double temperature = 1;    // at the start of a cycle, in mean op times
};

Answer search_sequences(const Problem& problem, Control& control,
                        const SequenceSearch& options = {});

}  // namespace placewright
