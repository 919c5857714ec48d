// Deletion: what is left of a schedule problem when the ops are left out that keep it from
// splitting.
//
// A hub is an op that is comparable with every other. Leaving ops out never raises the optimum: a
// schedule of the whole, without them, is one of the rest. So the optimum of the rest is a lower
// bound, and where few ops run beside a long trunk (the projections of an encoder's output, which
// every layer of a decoder reads) the rest has many more hubs.
//
// Ops are left out in order of how much work they may run beside: the sum of least times of the ops
// that are not comparable with them. Each level stops where no op is left that is above a share of
// all work.
//
// The rest is a problem whose cut nodes (coarsen/cut_nodes.h) are the hubs:
//
//   precedence        that went through ops left out is kept, as tensors that take no time
//   tensors           that pass over a hub are dropped; the hub keeps the order of the two ops
//   cut overheads     are dropped: who bears them may depend on what is left out
//
// One model, up to 4,000 ops: O(ops^2 / 64 x degree) time and bits for reachability.

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

struct Remainder {
  Problem problem;
  std::vector<OpId> original;  // by op of `problem`
};

// From the fewest ops left out to the most; only those with more cut nodes than the one before, and
// than the problem itself. None where the problem is too large or has several models.
std::vector<Remainder> remainders(const Problem& problem);

}  // namespace placewright
