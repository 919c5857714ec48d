// Plans made at once, from which longer searches begin (`latency`, `total-completion`; a single
// device under every objective).
//
//   earliest_end_list    Ops in order of upward rank (mean time to the end of the graph, transfers
//                        included); each goes to the device on which it ends first, in gaps between
//                        earlier ops where it fits: HEFT. O(ops x devices) slot searches.
//                        Topcuoglu, Hariri, Wu: Performance-effective and low-complexity task
//                        scheduling for heterogeneous computing, IEEE TPDS 13(3), 2002.
//   earliest_start_list  Again and again, of all ready ops and devices with memory left, the pair
//                        with the earliest start; ties by upward rank: m-ETF (Jeon et al., Baechi,
//                        SoCC 2020). Without memory limits and with equal devices ETF is within (2
//                        - 1/n) of the optimum without communication plus the longest communication
//                        chain (Hwang, Chow, Anger, Lee 1989).
//   best_list            Many lists, and the best of them (best_list.cpp).
//   best_single_device   The whole model on one device, the best of those that can hold it.
//
// Where devices share resources an op that ends first takes cores from all others: there both lists
// are the best of several (shared_lists.h), and never worse than the best single device. No
// guarantee on unrelated devices; memory is respected by leaving out devices without room.

#pragma once

#include "planners/planner.h"

namespace placewright {

using QuickPlan = Answer(const Problem&, Control&);

QuickPlan earliest_end_list;
QuickPlan earliest_start_list;
QuickPlan best_list;
QuickPlan best_single_device;

}  // namespace placewright
