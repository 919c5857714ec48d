// Filling devices one after the other along an order of the model: what the popular tools do.
//
// Blocks are taken in order; each device takes a run of them until `full` says so or memory ends. A
// block that the current device cannot take goes to the next that can. Where contiguous sets are
// asked for, devices never come back.

#pragma once

#include <functional>
#include <optional>

#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright {

// What a device holds while it is being filled.
struct Fill {
  DeviceId device;
  double bytes = 0;     // resident, with the block in question
  std::size_t ops = 0;  // with the block in question
};

// Whether the device has had its share, so that the block in question goes to the next.
using Share = std::function<bool(const Fill&)>;

// The filled plan; where memory stops it, a packing close to what filling without memory would
// give.
Answer fill_plan(const Problem& problem, const Share& full, Control& control);

}  // namespace placewright
