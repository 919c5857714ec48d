// Whole models, each on the device of its best average speed-up (`total-completion`).
//
// Models in order of arrival, of those that arrive together the one with the largest average
// speed-up first. Each goes whole to the device on which its average speed-up is best among those
// that no model has yet; when all are taken, to the one that is free first. An op that the device
// cannot run goes to the device of its best speed-up. A device runs its models one after the other.
// O(ops x devices). It keeps models apart and so cannot use that ops differ in what they gain.

#pragma once

#include "planners/planner.h"

namespace placewright {

Answer models_on_their_best_devices(const Problem& problem, Control& control);

}  // namespace placewright
