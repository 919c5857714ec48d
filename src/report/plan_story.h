// The story of a plan in two sentences, for the top of the page: what limits it, and what would
// help most.
//
// What limits it is the largest share of the critical path, the fullest stage (analysis/limits.h),
// or stages that take turns on shared resources (analysis/stage_turns.h). What would help is found
// without planning again: the plan is kept as it is and evaluated with 10 % more speed of each busy
// device and bandwidth of each busy link (analysis/more_of.h), so the sentence promises what this
// very plan would gain. 'placewright explain' plans again, and may find more.

#pragma once

#include <string>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct PlanStory {
  std::string limit;
  std::string help;
};

PlanStory plan_story(const Problem& problem, const Plan& plan, const Certificate& certificate);

}  // namespace placewright
