// Cut nodes: ops that split a schedule into parts that have nothing to do with each other.
//
// A cut node is an op c such that every other op is an ancestor or a descendant of c, and no edge
// leads from an ancestor to a descendant. When c starts, all that comes before has ended and no
// tensor of it is in flight; nothing that comes after can have begun when c ends. So the schedules
// before and after c share only the device of c, with congestion too. What else may tie the two
// sides together makes an op no cut node: a colocation group with ops on both sides. Memory and
// shared weights are the caller's business (`memory_cannot_bind`).
//
// In a topological order c has the same place whatever the order, and it is a cut node exactly when
// no edge passes over that place, no sink comes before it and no source after it. One pass: O(ops +
// edges).

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

// In topological order. Several models: none.
std::vector<OpId> cut_nodes(const Problem& problem);

// Whether every device could hold all ops that it may run, each so many times.
bool memory_cannot_bind(const Problem& problem, double copies = 1);

// The ops after one cut node and up to the next, in topological order.
struct CutSegment {
  OpId entry;             // the cut node before; not valid in the first segment
  OpId exit;              // the last of `ops` if that is a cut node; not valid otherwise
  std::vector<OpId> ops;  // without the entry
};

// The whole problem in order; one segment where there are no cut nodes.
std::vector<CutSegment> cut_segments(const Problem& problem);

}  // namespace placewright
