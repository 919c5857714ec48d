// What bears work together: the devices of a kind, or the resources that several kinds share.
//
// A pool is a set of kinds. While an op runs on a device it takes share x amount of the pool of the
// device's kind, amount being what the device takes of all its resources; the pool has no more than
// its capacity at any moment. So what the ops of a pool take, times their lengths (their energy),
// is at most its capacity times the time in which they all run. Single resources would say less: of
// one core of several an op may take nothing at all.

#pragma once

#include "problem/problem.h"

namespace placewright {

using PoolId = Id<struct PoolNoun>;

// What limits the work done at once.
enum class Capacity {
  devices,   // a device runs as many ops as it has lanes
  resources  // ops take of the resources of their device
};

struct Pools {
  Table<KindId, PoolId> of_kind;
  Table<PoolId, double> capacity;  // as many as there are kinds; 0: no kind's
  Table<KindId, double> amount;    // the least of the kind's devices

  Pools(const Problem& problem, Capacity limit);
};

}  // namespace placewright
