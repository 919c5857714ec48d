// A placement for OpenVINO's HETERO device.
//
// HETERO takes the device of each op from its run-time attribute `affinity`, which the IR format
// does not keep: so the model is written as IR, with the names that plans use, and beside it a JSON
// file with the affinities and the name of the device to compile for. Sets of cores are all `CPU`
// there: HETERO knows no smaller devices.

#pragma once

#include <string>

#include "backends/runtime.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// Throws std::invalid_argument for a device of another backend.
// {"device": "HETERO:GPU.0,CPU", "affinity": {"conv1": "GPU.0", …}}
std::string affinity_json(const Problem& problem, const Plan& plan);

// "model.xml" -> "model.affinity.json"
std::string affinity_path(const std::string& model_path);

}  // namespace placewright
