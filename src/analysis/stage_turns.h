// Pipelines whose stages share resources: when in each period a stage holds them, and which stages
// take turns on the ones that are busiest.
//
// A stage holds the resources of its devices for its load, from its offset on, modulo the period
// (docs/semantics.md, "throughput"). `phased` training has a period for each pass; the backward
// ones follow the forward ones. O(stages x resources).

#pragma once

#include <cstddef>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct StageTurn {
  std::size_t stage = 0;  // of the plan's list
  double start = 0;
  double end = 0;  // within the plan's value: a turn that goes over the period's end is two
};

// Empty where the plan's stages have no offsets.
std::vector<StageTurn> stage_turns(const Problem& problem, const Plan& plan);

// Stages that cannot work at the same time, since each needs what the others hold.
struct TakingTurns {
  std::vector<std::size_t> stages;    // in order of their offsets
  std::vector<ResourceId> resources;  // that all of them, and no other stages, use
  double time = 0;                    // of their loads together
};

// Of the resources that stages keep busy for longest. No stages where the fullest stage (limits.h)
// alone is as long as the period, so that it is the limit.
TakingTurns limiting_turns(const Problem& problem, const Plan& plan);

}  // namespace placewright
