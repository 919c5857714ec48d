// Work of a contiguous pipeline on several kinds of devices (`throughput`, joint contiguity).
//
// The work bound lets every op choose its kind of device by itself. Contiguous stages cannot. Each
// is the difference of two down-sets of the blocks (coarsen/blocks.h), and where a block is
// comparable with all others, a down-set has nothing behind it or everything before it. So along
// the segments between such blocks a pipeline is a walk: a segment is on the device of the one
// before it, or a border lies in it, and k devices make k - 1 borders at most. With prices w(c) >=
// 0 on the time of the n(c) devices of kind c and p >= 0 on borders,
//
//   T sum over c of n(c) w(c)  >=  least cost of a walk - (k - 1) p
//
//   cost of a segment that stays on kind c   w(c) time(segment, c)
//   cost of one with a border                p + sum over its blocks v of min over c of w(c) time(v, c)
//
// since no load is below its compute (Lagrangian relaxation of the loads and of the number of
// devices). p is found by bisection; the w are raised where the walk crowds. Transfers and memory
// are left out. O((ops + edges + segments x kinds x steps of prices)).

#pragma once

#include <functional>

#include "problem/problem.h"

namespace placewright {

inline constexpr Features kContiguousWorkKnows =
    kCommonAndSharing -
    Features{Feature::free_sets, Feature::convex_sets, Feature::replicas, Feature::phased_training};

// Of a problem with these features. Asked to stop, what is proved by then.
double contiguous_work_bound(
    const Problem& problem, const std::function<bool()>& stop = [] { return false; });

}  // namespace placewright
