// What a transfer costs before anyone knows where it goes: priorities of list scheduling.

#pragma once

#include "problem/problem.h"

namespace placewright {

// How long each tensor travels, on average over pairs of devices, where a pair of the same device
// and one without a link count as 0.
Table<TensorId, double> mean_transfer_times(const Problem& problem);

}  // namespace placewright
