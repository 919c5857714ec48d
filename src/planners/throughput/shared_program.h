// Pipelines on sets of cores along one order of the graph.
//
// For devices that take their resources whole. Stages are intervals of the order of blocks
// (coarsen/blocks.h), each on r devices of one kind, and all of them run side by side, so the
// period is the largest load. With w resources for each device of a kind
//
//   best(j, c) = min over i < j, kind, r of max(best(i, c - r w), load(i, j, kind) / r)
//
// over prefixes j and the number c of resources that are left: how many stages, how wide each, and
// how many replicas. Sets of cores that are nested in halves can always be handed out, the widest
// first; where the devices are others, what cannot be handed out is left out.
//
// Loads are those of inference in one memory space. Under other rules (training, transfers, shares
// below 1, memory that binds) the stages are a good start whose value the evaluator tells; a plan
// that breaks a rule is not handed out.
//
// O(blocks^2 x resources x choices) time, O(blocks^2 x kinds) memory.

#pragma once

#include <optional>
#include <span>
#include <string>

#include "coarsen/blocks.h"
#include "planners/planner.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright::throughput {

// Why the program has nothing to say of the problem; empty: it has.
std::string refuses_shared_program(const Problem& problem);

// Where all devices have one memory and the weights are more than it holds: that nothing fits.
std::optional<Answer> too_much_for_one_memory(const Problem& problem);

// The best stages along the order of the blocks' numbers. Nullopt: stopped, or none of them keeps
// all rules.
std::optional<Plan> shared_program(const Problem& problem, const Blocks& blocks, Control& control);

// The same blocks, numbered in this order of them.
Blocks in_order(const Problem& problem, const Blocks& blocks, std::span<const BlockId> order);

// Whether a pipeline keeps memory, pins, support, contiguity and the rules of replicas.
bool keeps_rules(const Problem& problem, const Plan& plan);

}  // namespace placewright::throughput
