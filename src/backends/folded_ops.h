// Ops of a model that no runtime runs by themselves, so that an estimate gives them no place of
// their own. Three sorts:
//
//   shapes       what is computed from shapes alone, which are known before the model runs
//   forms        reshapes, transposes, conversions, slices: another look at a tensor, or part of the
//                kernel that makes or reads it
//   elementwise  one input beside constants: fused to the kernel that makes it
//
// Each stays with the op that makes its input or, of a model's input, with the op that reads it.
// Measured problems need none of this: `profile` asks the backend what it has fused.

#pragma once

#include <vector>

#include "backends/runtime.h"
#include "placewright/problem/ids.h"

namespace placewright {

// By op: whether it takes no time, being computed from shapes alone or only another shape of its
// input.
std::vector<bool> takes_no_time(const ModelGraph& graph);

// Groups of ops that share a device, each with at least two ops. O(ops + edges).
std::vector<std::vector<OpId>> folded_together(const ModelGraph& graph);

}  // namespace placewright
