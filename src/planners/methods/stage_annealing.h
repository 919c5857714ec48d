// Annealing of contiguous pipelines: better ones by small changes that keep them contiguous.
//
// The devices have a fixed order, that of the plan to start from, and every block is at a place in
// it, no later than the blocks after it. A move takes a block to another place, mostly the next
// one, and with it what must follow: its descendants that would be before it, or its ancestors that
// would be behind it. Often a second block goes the other way. As in annealing.h the p-norm of the
// loads is minimised, p growing from 8 to 64, and the temperature falls in coolings, each twice as
// long as the one before and begun at the best plan so far.
//
// All rules of loads and memory, through the evaluator. No replicas. Some hundred thousand moves
// per second on some hundred blocks.

#pragma once

#include <cstdint>
#include <optional>

#include "planners/methods/stage_model.h"
#include "planners/planner.h"
#include "problem/plan.h"

namespace placewright::throughput {

// The best plan found, if it is better than the one given. Ends after this many moves, or when the
// control says so.
std::optional<Plan> anneal_stages(const StageModel& model, const Plan& start,
                                  std::uint64_t most_moves, Control& control);

}  // namespace placewright::throughput
