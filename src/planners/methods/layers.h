// Graphs whose layers are there again and again (coarsen/repetition.h), for the planners that plan
// a layer once.

#pragma once

#include "problem/problem.h"

namespace placewright {

inline constexpr Features kLayersKnow =
    kCommonAndSharing - Features{Feature::several_models, Feature::training, Feature::colocation,
                                 Feature::pins, Feature::shared_weights};

}  // namespace placewright
