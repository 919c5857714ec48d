// Critical path with a device for each op and the transfers that the choice makes unavoidable.
//
//   earliest(v, d) = time(v, d) + max(arrival, max over inputs u of ready(u, d))
//   ready(u, d)    = min over devices a of earliest(producer(u), a) + move(u, a, d)
//
// No schedule ends v on d before earliest(v, d): the producer runs on some device a, and u reaches
// d no faster than move(u, a, d). Ports, device load and memory are left out. O(edges x devices^2);
// where that is too much, times alone (O(edges x devices)).

#pragma once

#include "problem/problem.h"

namespace placewright {

// For each model, a time before which it cannot be complete.
Table<ModelId, double> critical_paths(const Problem& problem);

}  // namespace placewright
