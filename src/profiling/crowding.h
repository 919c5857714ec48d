// How much slower a device is while the others work too: caches, memory and clock rates are shared.

#pragma once

#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/measurement.h"

namespace placewright {

// One inference of the whole model on the first target while each of the others runs the same model
// again and again. The targets share no core.
Measured measure_crowded(const NeuralModel& model, const std::vector<Target>& targets,
                         const MeasureOptions& options);

// By how much the factor between two medians may be off, relative to it: half of what the deciles of
// both series are apart.
double error_of_factor(const Measured& alone, const Measured& crowded);

// As many targets of the first one's size, it among them, as fit without sharing a core.
std::vector<Target> side_by_side(const std::vector<Target>& targets, std::size_t first);

}  // namespace placewright
