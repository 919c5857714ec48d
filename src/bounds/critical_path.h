// Critical path with a device for each op and the transfers that the choice makes unavoidable.
//
//   earliest(v, d) = time(v, d) + max(arrival, max over inputs u of ready(u, d))
//   ready(u, d)    = min over devices a of earliest(producer(u), a) + move(u, a, d)
//
// No schedule ends v on d before earliest(v, d): the producer runs on some device a, and u reaches
// d no faster than move(u, a, d). Ports, device load and memory are left out.
//
// The producer's devices are asked in the order of its ends there, until none that is left could be
// in time: O(edges x devices^2) at most, and mostly a small part of that. When it becomes too much,
// or when asked to stop, times alone from there on (O(edges x devices)), since a path that leaves
// out some transfers is a bound too.

#pragma once

#include <functional>

#include "problem/problem.h"

namespace placewright {

// For each model, a time before which it cannot be complete.
Table<ModelId, double> critical_paths(
    const Problem& problem, const std::function<bool()>& stop = [] { return false; });

}  // namespace placewright
