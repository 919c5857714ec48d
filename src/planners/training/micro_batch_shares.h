// How many micro-batches of a step pass through each replica, when everything else of the plan is
// known.
//
// Minimises max (m_r - 1) slot_r over the replicas of each stage, with sum m_r given, 1 <= m_r <=
// c_r, where c_r is what memory allows: a replica that takes fewer micro-batches than there are
// stages from it on holds fewer at once. Adding one micro-batch after another to the replica that
// is then done first is optimal (an exchange argument: any other choice only raises the maximum). A
// bisection on the maximum takes most of these steps at once: O(replicas log(1 / precision)).

#pragma once

#include "evaluate/training_step.h"

namespace placewright {

// The value of the plan with the best shares, which it sets; infinite if memory or the number of
// micro-batches leaves none. The plan's stages, groups and micro-batch size must be allowed.
double share_out(const StepModel& model, TrainingPlan& plan);

}  // namespace placewright
