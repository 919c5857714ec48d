// The best walks over the ideals of a CallGraph (bounds/call_ideals.h): what calls-exact and
// calls-chain search for.
//
// search_walks        labels (ready time of each tensor that leaves, end of the last sink) at each
//                     ideal and use, of which none is as good as another in everything, cut off
//                     where ready + tail reaches the cutoff. Complete, it has the best plan of the
//                     graph below the cutoff or the proof that there is none.
// walk_of_least_sum   the shortest path over ideals by durations alone, as if nothing ran at the
//                     same time. O(pairs of ideals x uses).

#pragma once

#include <optional>
#include <vector>

#include "bounds/call_ideals.h"

namespace placewright::calls {

// One step of a walk: a host op (CallIdeals::Step::kHost), or a call of a class.
struct CallStep {
  int accelerator_class = CallIdeals::Step::kHost;
  std::vector<CallGraph::Node> nodes;
};

struct CallWalk {
  double value = kInfinity;
  std::vector<CallStep> steps;
};

struct WalkSearch {
  bool complete = false;
  std::optional<CallWalk> walk;  // the best of the graph below the cutoff, where complete
};
// The ideals' tails must have been computed (CallIdeals::bound).
WalkSearch search_walks(const CallIdeals& ideals, double cutoff, std::size_t label_limit,
                        const CallIdeals::Stop& stop);

// The walk whose durations have the least sum; its value is that sum.
std::optional<CallWalk> walk_of_least_sum(const CallIdeals& ideals, const CallIdeals::Stop& stop);

}  // namespace placewright::calls
