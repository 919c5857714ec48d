// Which tensors have to travel under a placement (docs/semantics.md, "Transfers").

#pragma once

#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::verifying {

// A transfer that the placement makes necessary; as `Transfer`, without times.
struct Movement {
  TensorId tensor;
  Leg leg = Leg::direct;
  DeviceId from;  // not valid for `in`
  DeviceId to;    // not valid for `out`
  double duration = 0;
  OpId first_consumer;  // on `to`, the one of smallest topological rank; not valid for `out`
};

// Supposes that every tensor can reach its readers. For each tensor `out` comes first, then the
// receiving devices by number.
Rows<TensorId, Movement> needed_movements(const Problem& problem, const Placement& placement);

// Host interconnect and a device that reads and writes host memory for nothing.
bool shares_host_memory(const Problem& problem, DeviceId device);

// "tensor 'x' from device 'a' to device 'b'", "tensor 'x' out of device 'a'", "... into device 'b'"
std::string called(const Problem& problem, const Movement& movement);
// `from` and `to`, where they are valid.
std::vector<DeviceId> endpoints(const Movement& movement);

}  // namespace placewright::verifying
