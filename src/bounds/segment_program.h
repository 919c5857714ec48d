// A linear program for one segment between two cut nodes: placement, load, ports and paths at once.
//
// The entry has ended at time 0 on a given device, the exit runs on a given one. With x[v, d] the
// part of op v on device d, y[e, a, b] the part of edge e from a to b, z[u, a, b] whether tensor u
// moves, s(v) the start of v:
//
//   minimise T
//   sum over d of x[v, d] = 1;  sum over b of y[e, a, b] = x[u, a];  sum over a of y[e, a, b] = x[v, b]
//   s(v) >= s(u) + sum of time(u, a) x[u, a] + sum of move(e, a, b) y[e, a, b]
//   sum of head(v, d) x[v, d] <= s(v) <= T - sum of (time(v, d) + tail(v, d)) x[v, d]
//   z[u, a, b] >= y[e, a, b]
//
// and for each device, each port (congestion over links) and each window (r, q), with A what is
// there and has a head >= r and a tail >= q:
//
//   sum over A of length x  +  (r + q) mean over A of x  <=  T
//
// since what A holds of a schedule runs one at a time between r and T - q (an average of such rows,
// one for each member that may be the one that is there); with the constant r + q where no passage
// is shorter than that. It sees at once that ops elsewhere wait for their transfers, that transfers
// wait for each other, and that the devices share the work, which heads, tails and work by
// themselves do not. Fractions of ops on all devices are its weakness.
//
// The bound is computed from the row prices over the box of the variables (weak duality), never
// read off the solver: rounding in HiGHS cannot make it wrong. Memory, colocation, resources, cut
// overheads and the ports of host interconnects and of shared memory spaces are left out.

#pragma once

#include <atomic>
#include <cstddef>

#include "bounds/segment_paths.h"

namespace placewright {

// A way through a segment, and what is known of it.
struct SegmentPassage {
  std::size_t entry = 0;  // devices, as in SegmentPaths
  std::size_t exit = 0;
  double at_least = 0;  // a lower bound: windows say more when it is high
  double enough = 0;    // no bound above this is asked for; finite
};

struct SegmentProgramLimits {
  double most_seconds = kInfinity;
  const std::atomic<bool>* stop = nullptr;
};

// Variables of the program, about: what a caller should look at before it asks.
std::size_t segment_program_size(const Problem& problem, const CutSegment& segment);

// A lower bound on the time from the entry's end to the exit's.
double segment_program_bound(const Problem& problem, const SegmentPaths& paths,
                             const SegmentPassage& passage, const SegmentProgramLimits& limits);

}  // namespace placewright
