// Which tensors have to travel under a placement, and who bears what for handing them out and
// taking them in (docs/semantics.md, "Transfers").

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
  DeviceId to;    // the receiving device of its space; not valid for `out`
  double duration = 0;
};

struct Traffic {
  Rows<TensorId, Movement> movements;  // `out` comes first, then the receiving spaces by number
  Rows<TensorId, OpId> receivers;      // the first consumer on each device that bears a receive
  Table<TensorId, char> handed_over;   // whether another device of the producer's space reads it
};

// Supposes that every tensor can reach its readers.
Traffic traffic_of(const Problem& problem, const Placement& placement);

// What the producer's device bears for handing the tensor out.
double send_overheads(const Problem& problem, const Placement& placement, const Traffic& traffic,
                      TensorId tensor);

// Host interconnect and a device that reads and writes host memory for nothing.
bool shares_host_memory(const Problem& problem, DeviceId device);

// "tensor 'x' from device 'a' to device 'b'", "tensor 'x' out of device 'a'", "... into device 'b'"
std::string called(const Problem& problem, const Movement& movement);
// `from` and `to`, where they are valid.
std::vector<DeviceId> endpoints(const Movement& movement);

}  // namespace placewright::verifying
