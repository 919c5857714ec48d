// What runs of real clusters taught, by the kinds of GPU that they have:
//
//   {"placewright": "training-constants", "version": 1,
//    "clusters": [{"name": "clariden", "kinds": ["GH-96"],
//                  "constants": {"hidden_launches": 0.1, …}}]}

#pragma once

#include <string>

#include "problem/training.h"

namespace placewright {

// Gives the problem the constants of the first cluster that has all of its kinds. False if none
// has. Throws InputError.
bool apply_constants(const std::string& path, TrainingProblem& problem);

}  // namespace placewright
