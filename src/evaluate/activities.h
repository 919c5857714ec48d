// The activities of a placement: its ops and the transfers they need, with lengths and precedence.
//
// Ops come first and keep their numbers; transfers follow. O(ops + tensors) to build.

#pragma once

#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

using ActivityId = Id<struct ActivityNoun>;

struct ActivityNetwork {
  ActivityNetwork(const Problem& problem, const Placement& placement);

  std::size_t op_count;
  std::vector<Transfer> transfers;  // times not set
  Table<ActivityId, double> duration;
  Rows<ActivityId, ActivityId> successors;
  Table<ActivityId, std::uint32_t> predecessor_count;

  [[nodiscard]] std::size_t size() const { return duration.size(); }
  [[nodiscard]] bool is_op(ActivityId id) const { return id.index() < op_count; }
  [[nodiscard]] OpId op(ActivityId id) const { return OpId{id.index()}; }
  [[nodiscard]] const Transfer& transfer(ActivityId id) const {
    return transfers[id.index() - op_count];
  }
  [[nodiscard]] ActivityId of(OpId id) const { return ActivityId{id.index()}; }
};

}  // namespace placewright
