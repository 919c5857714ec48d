// The best jointly contiguous pipeline, exactly.
//
// The program over ideals (ideal_program.h) is run with a cutoff that grows from a lower bound (by
// 0.05 %, 0.1 %, 0.2 %, ...) up to the value of the best plan along a few linear orders. A run that
// finds nothing proves that no plan is below its cutoff; the first that finds a plan has found the
// best. The windows of work shrink with the cutoff, so early runs see few of the ideals, and the
// last one costs about as much as all before it.
//
// Several classes of devices, replicas, colours, pins, memory, every transfer mode, interleaved and
// phased training. With links the certificate rests on lower bounds of loads, so a gap may stay.
//
// Wide graphs have millions of ideals. When the windows first hold more than `wide_from` of them,
// three others have most of the time that is left: the constraint program over stages
// (stage_program.h); where devices are alike, the search over boundaries (boundary_search.h), which
// raises the bound; and annealing (stage_annealing.h), which improves the plan. What they find and
// prove narrows the windows for the rest. Ideals are enumerated up to `ideal_limit`; a problem with
// more of them within the windows keeps the best plan and the last proven bound. Memory: about 100
// bytes for each ideal in a window.
//
// Reference: J. Tarnawski et al., NeurIPS 2020 ("DP"); there all pairs of ideals are stored.

#pragma once

#include <cstddef>

#include "planners/planner.h"

namespace placewright::throughput {

struct ContiguousPlan {
  std::size_t ideal_limit = 3'000'000;
  std::size_t wide_from = 20'000;  // 0: never
};

// Of a problem that `refuses_contiguous` (contiguous_search.h) does not refuse.
Answer best_contiguous_plan(const Problem& problem, Control& control,
                            const ContiguousPlan& options = {});

}  // namespace placewright::throughput
