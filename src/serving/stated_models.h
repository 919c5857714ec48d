// Served models from a problem file, so that a load can be simulated where there is no such
// machine.
//
// A model's time is that of all of its ops on the device that is fastest for it. A problem does not
// say what a cut into segments costs, so the cuts are supposed: as many as the quantum asks for,
// each for kSupposedCut.

#pragma once

#include <span>
#include <vector>

#include "problem/problem.h"
#include "serving/served_model.h"

namespace placewright {

inline constexpr double kSupposedCut = 0.1;  // milliseconds, as measured on a few machines
inline constexpr double kCutShare = 0.03;    // of a segment: what a cut may cost

// Of all ops of the model on the device, in the problem's unit; infinite if it cannot run one.
double time_on(const Problem& problem, ModelId model, DeviceId device);

// Throws std::invalid_argument for a problem whose times have no unit, and a model that no device
// can run.
std::vector<ServedModel> stated_models(const Problem& problem);

// No segment should be longer, in milliseconds: the own time of the shortest model, from 2 to 10.
double quantum_of(std::span<const ServedModel> models);

// The number of segments that the quantum asks for where a cut costs so much.
std::size_t wanted_segments(double whole, double quantum, double cut);

// Gives every model the segments that the quantum asks for.
void suppose_segments(std::vector<ServedModel>& models);

}  // namespace placewright
