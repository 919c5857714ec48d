// Packing: a placement that fits memory and comes close to what a planner wished for.
//
//   minimise  sum over groups g of cost(g, device of g)
//   so that   resident memory holds on every device, groups go where they are allowed, and
//             tensors only where links exist
//
// Greedy planners dead-end when memory is nearly full; they then ignore memory, state what they
// would have liked as costs, and schedule around the packing. A greedy repair is tried first
// (O(groups x devices) per move), then CP-SAT, whose answer is also the proof when nothing fits.
// Sizes are rounded in favour of fitting for the proof and against it for the placement, so both
// stay true in exact arithmetic.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright {

// cost[group x devices + device]; kInfinity: not allowed.
class PackingCosts {
 public:
  explicit PackingCosts(const Problem& problem);

  double& at(GroupId group, DeviceId device) {
    return costs_[group.index() * devices_ + device.index()];
  }
  [[nodiscard]] double at(GroupId group, DeviceId device) const {
    return costs_[group.index() * devices_ + device.index()];
  }

 private:
  std::size_t devices_;
  std::vector<double> costs_;
};

// Staying costs nothing; moving a group elsewhere costs the time that its ops lose (at least a
// little).
PackingCosts cost_of_leaving(const Problem& problem, const Placement& wish);

struct Packing {
  std::optional<Placement> placement;
  bool proved_infeasible = false;
  std::string reason;
};

Packing pack(const Problem& problem, const PackingCosts& costs, Control& control);

}  // namespace placewright
