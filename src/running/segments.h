// A plan cut into the parts that are compiled and run as a whole.
//
// A segment is a set of ops of one model on one device; each device runs its segments one after the
// other. Cutting costs (lost fusions, reorders at the borders), so there should be few; but a
// segment starts only when all of its inputs are there, and hands out nothing before its end.
//
//   schedules  The ops go in the order of their start. A segment ends after an op that another
//              device waits for and begins before one that waits for another device, unless that
//              is known to have come already. Then neighbours on a device are joined wherever the
//              end, simulated on segments with the cost of a cut, does not come later. A segment
//              has its cores from its start to its end, so one ends where the plan gives any of
//              them to another device.
//   pipelines  As few as the order of the stages allows: one for each device where the plan is
//              contiguous.
//
// Ops that the backend fuses (colocation groups) stay together; a group whose contraction would
// close a cycle is taken apart. O((ops + edges) log ops), and for the joining O(segments + links
// between them) for each pair of neighbours that is tried: quadratic in segments in a pass, and few
// passes.

#pragma once

#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Segment {
  ModelId model;
  std::vector<DeviceId> devices;     // more than one: replicas that take samples in turn
  std::vector<OpId> ops;             // in topological order
  std::vector<std::size_t> inputs;   // the segments whose tensors it reads, ascending
  std::vector<std::size_t> outputs;  // ... and those that read its own
  double predicted = 0;              // time of its ops in the plan, overheads included
};

// In an order in which they can run one after the other. The plan must be valid.
std::vector<Segment> segments_of(const Problem& problem, const Plan& plan);

}  // namespace placewright
