// How long an op takes where it is (docs/semantics.md, "Cut overhead"): its time there, what its
// device bears for each tensor that it hands out, and for each that it is the first there to take
// in.

#pragma once

#include <cstddef>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Whether a device that reads a tensor from `from` bears its receive.
inline bool bears_receive(const Problem& problem, DeviceId from, DeviceId device) {
  if (device == from) return false;
  return problem.interconnect() == InterconnectKind::links || !problem.on_host(device) ||
         problem.same_space(from, device);
}

// How often the producer's device bears the send of a tensor that is read in `spaces` other spaces,
// and perhaps by another device of its own. Through the host it leaves once, whoever reads it.
inline std::size_t sends_borne(const Problem& problem, DeviceId from, std::size_t spaces,
                               bool handed_over) {
  if (problem.interconnect() == InterconnectKind::host) {
    spaces = spaces > 0 && !problem.on_host(from) ? 1 : 0;
  }
  return spaces + (handed_over ? 1 : 0);
}

// Of each op under a placement. O(ops + tensors).
Table<OpId, double> op_durations(const Problem& problem, const Placement& placement);

}  // namespace placewright
