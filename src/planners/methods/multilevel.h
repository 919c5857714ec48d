// A large problem through ever smaller ones (`latency`, `throughput`).
//
// As multilevel partitioners do it (Mt-KaHyPar): pairs of ops become one, round by round
// (coarsen/matching.h), until some hundreds are left or no more pairs can be joined. Then back,
// level by level: the plan of the coarser level, as one of this level, or what a planner makes of
// this level afresh if that is better, is improved by moves of ops of this level. A move of one
// coarse op is a move of dozens that belong together.
//
//   throughput   Cycles from nothing, after the first with transfer costs that vary by up to a
//                half. This is for wide graphs: no single order of their ops shows where the cheap
//                cuts are, and one of blocks that hold on to each other does.
//   latency      From a plan: only ops on the same device are joined, in two rounds, since a coarse
//                op sends when all of it has ended and more joined ops leave little to run in
//                parallel. Cycles while they bring something, then improvement of the whole.
//
// A cycle costs some passes over the graph and the planners' time. No bound of its own. Pipelines:
// jointly contiguous, no peak memory, replicas only where devices share.

#pragma once

#include <functional>
#include <optional>

#include "planners/planner.h"

namespace placewright {

// What a family plans and improves a level with.
struct LevelPlanners {
  std::function<Answer(const Problem&, Control&)> quick;
  // None: nothing better.
  std::function<std::optional<Plan>(const Problem&, const Plan&, Control&)> improved;
};

// Of fewer ops on devices that share, others see all.
bool worth_coarsening(const Problem& problem);

Answer multilevel_plan(const Problem& problem, const LevelPlanners& planners, Control& control);

}  // namespace placewright
