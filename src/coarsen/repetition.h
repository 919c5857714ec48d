// Repetition: the part of a graph that is the same again and again, as the layers of a transformer.
//
// Found by structure alone, whatever the names. Each op, in topological order, has a label: its
// type, its bytes, the sizes of its outputs, the kinds of devices that support it, and how far back
// in the order the ops are that it reads from (far ones count as far, since every layer may read a
// mask that is made once). A stretch of the order in which every label is that of `period` places
// before repeats. Times may differ: layers that are measured one by one are never quite equal.
//
// The periods tried are the distances at which four labels in a row recur most often. O(ops +
// edges) for each.

#pragma once

#include <cstddef>
#include <optional>

#include "problem/problem.h"

namespace placewright {

// Places `begin` to `begin + period x count` of the topological order.
struct Repetition {
  std::size_t begin = 0;
  std::size_t period = 0;  // ops
  std::size_t count = 0;

  [[nodiscard]] std::size_t end() const { return begin + period * count; }
  [[nodiscard]] bool holds(std::size_t place) const { return place >= begin && place < end(); }
};

// The one that covers most ops, of two the one with the shorter period; nullopt if nothing is there
// four times.
std::optional<Repetition> longest_repetition(const Problem& problem);

}  // namespace placewright
