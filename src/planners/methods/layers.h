// Graphs whose layers are there again and again (coarsen/repetition.h), for the planners that plan
// a layer once.

#pragma once

#include <string>

#include "problem/problem.h"

namespace placewright {

// One model, inference, no pins, no colocation, no shared weights; empty: the problem is so.
std::string refuses_layers(const Problem& problem);

}  // namespace placewright
