// Path and work between cut nodes (coarsen/cut_nodes.h).
//
//   latency >= min over devices d0, d1, ... of the sum over segments s of t(s, d(s-1), d(s))
//
// since the device of a cut node is the same for all that comes before and after it. t(s, a, b) is
// a lower bound on the time from the end of the segment's entry on a to the end of its exit on b:
// the least T for which every op v has a device d with head(v, d) + time(v, d) + tail(v, d) <= T,
// and for the devices' weights w
//
//   sum over ops v of min over such devices d of w(d) time(v, d)
//     <=  sum over devices d of w(d) lanes(d) max(0, T - head(d) - tail(d))
//
// and, where devices share resources, the same with pools (bounds/pools.h) for devices and energy
// for time. Heads and tails are critical paths with unavoidable transfers (critical_path.h) and
// those of a device are the least of its ops: before a tensor can have come there, and after one
// can still come back, a device is of no use. Any weights >= 0 are valid (linear programming
// duality); w is the devices' speed on the segment. Ports and memory are left out.
//
// Overheads of cuts count where devices share resources, since there a cut is what keeps them from
// doing several ops at once. Let c be the device of the entry. Either all of the segment is on c,
// or some op v is not: then the work is at least that of the cheapest split between c and all other
// devices with v on the other side, in which each tensor with readers on the other side than its
// producer costs one overhead here and one there. That is a minimum cut (solvers/min_cut.h), for
// each v. Beyond kMostCutWork overheads are left out.
//
// O(edges x devices^3 + ops x devices^3 x steps of bisection). Where that is too much, or there are
// several models: 0.

#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "coarsen/cut_nodes.h"
#include "problem/problem.h"

namespace placewright {

double segment_bound(const Problem& problem);

// Which devices of entry and exit are asked for, by number; empty: all.
using SegmentFilter = std::function<bool(std::size_t entry, std::size_t exit)>;

// t(s, entry, exit) for all devices, row by entry; one row or column where there is no entry or
// exit. 0 where it is not asked for.
std::vector<double> segment_times(const Problem& problem, const CutSegment& segment,
                                  const SegmentFilter& wanted = {});

}  // namespace placewright
