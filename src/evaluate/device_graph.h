// The forward graph with each device's ops contracted to one node: who feeds whom in a pipeline.

#pragma once

#include "problem/problem.h"

namespace placewright {

// For each device the others that read from it, once for each edge between ops.
Rows<DeviceId, DeviceId> device_graph(const Problem& problem, const Placement& placement);

}  // namespace placewright
