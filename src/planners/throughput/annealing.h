// Annealing: better pipelines by small changes to a good one; contiguity is given up.
//
// Works on blocks (colocation groups, dominated ones joined) with the incremental evaluator. Moves:
// a block to another device (often to one of its neighbours'), two blocks change places, a
// connected piece of some blocks goes to another device, a block goes where another one is pushed
// out to a third device. What is minimised is the p-norm of the device loads, p growing from 8 to
// 64: near the maximum, yet a step that only relieves the second busiest device counts. The best
// maximum seen is kept.
//
// Memory, pins and support hold throughout. About a million moves per second on some hundred
// blocks.

#pragma once

#include <cstdint>
#include <vector>

#include "planners/methods/incumbent.h"
#include "planners/planner.h"
#include "problem/problem.h"

namespace placewright::throughput {

// What annealing knows of a problem, the same for every cooling.
struct AnnealingUnits {
  explicit AnnealingUnits(const Problem& problem);

  [[nodiscard]] std::size_t size() const { return groups.size(); }

  std::vector<std::vector<GroupId>> groups;            // of each block
  std::vector<std::vector<std::uint32_t>> neighbours;  // blocks that share a tensor with it
};

// Moves that are worth a short cooling.
std::uint64_t short_cooling(const AnnealingUnits& units);

// One cooling from the incumbent, which must have a plan: for this many seconds (if the budget
// counts steps: regardless of time), and at most this many moves.
void cool(const Problem& problem, const AnnealingUnits& units, Incumbent& incumbent,
          Control& control, double seconds, std::uint64_t most_moves, std::uint64_t seed);

}  // namespace placewright::throughput
