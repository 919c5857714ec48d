// Cuts: the tensors that leave the device (or call) that makes them, and what that costs.
//
// The cost of a cut is the time of all movements of the tensor with the overheads of handing it out
// and taking it in (docs/semantics.md, "Transfers"; within a memory space there are only those):
// what the plan would not do if all consumers sat with the producer. How much of it delays the plan
// is another matter: see the critical path. O(ops + consumers).

#pragma once

#include <cstddef>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Cut {
  TensorId tensor;
  DeviceId from;
  std::vector<DeviceId> to;  // where it is read, each device once; between two calls of one device
                             // that device
  double time = 0;
};

// All cuts, the most costly first.
std::vector<Cut> cuts_of(const Problem& problem, const Plan& plan);

double time_of_cuts(const Problem& problem, const Plan& plan);

}  // namespace placewright
