// Quick proofs that no plan exists, from resident memory alone.
//
// For a colocation group g let bytes(g) be what its ops occupy together, each shared weight once.
// No plan exists when
//   1. some group has no device that all of its ops may use;
//   2. some group has bytes(g) > memory(space of d) on every device d that it may use;
//   3. the sum of all ops' bytes, each shared weight once, exceeds the sum of the spaces' memory.
// Each is necessary for a plan under every objective and memory model (peak counts more, replicas
// hold more), so the proof is sound; a packing of the groups may still fail. O(ops x devices).

#pragma once

#include <optional>
#include <string>

#include "problem/problem.h"

namespace placewright {

// One sentence with what is needed and what there is; nullopt if none of the three applies.
std::optional<std::string> proof_of_infeasibility(const Problem& problem);

// Bytes that all ops occupy, each shared weight once.
double memory_needed(const Problem& problem);

// The sum of the devices' memory, that of a space which several share once.
double memory_available(const Problem& problem);

}  // namespace placewright
