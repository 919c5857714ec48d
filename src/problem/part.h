// Parts of a problem: some of its ops, some of its devices.

#pragma once

#include <span>

#include "problem/problem.h"

namespace placewright {

// All but the ops and what belongs to them: tensors, colocation, shared weights.
ProblemDraft frame_of(const Problem& problem);

// These ops, numbered as given, on all devices. A tensor that one of them produces and another
// reads is in it, with those readers; what comes from other ops is there from the beginning.
// Colocation and shared weights go with their ops.
ProblemDraft part_of(const Problem& problem, std::span<const OpId> ops);

// Only these devices, numbered as given. Throws std::invalid_argument where an op is pinned to
// another one.
void keep_devices(ProblemDraft& draft, std::span<const DeviceId> kept);

}  // namespace placewright
