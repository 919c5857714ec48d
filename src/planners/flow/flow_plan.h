// The published Talos as a construction: a plan by FlowRule over all events, and the refinement
// that `talos` puts on top.

#pragma once

#include "planners/planner.h"
#include "problem/plan.h"

namespace placewright {

// Without packing. Memory, pins and colocation as all constructive planners (device_choice.h).
Answer flow_plan(const Problem& problem, Control& control);

// One model after the other, each op in the gaps where it ends first (HEFT's insertion), for a few
// orders of the models: by weight / critical path, by arrival, and with neighbours swapped as long
// as that gains.
Answer models_in_turn(const Problem& problem, Control& control);

// Every model whole on one device, with the shares and turns of model_shares.h.
Answer whole_models_plan(const Problem& problem, Control& control);

// Local search from the plan (methods/sweep.h), with as many moves as a second allows or until
// `goal` is reached. Never worse.
Plan refined_completion(const Problem& problem, Plan plan, double goal, Control& control);

}  // namespace placewright
