// The constraint program over stages: the best jointly contiguous pipeline, for graphs with too
// many down-sets to list.
//
// The pipeline has as many places as there are devices. For each block v and place s a 0/1
// variable after[v,s] says that v is at s or later:
//
//   after[v,s+1] -> after[v,s];     u before v in the graph: after[u,s] -> after[v,s]
//   x[v,s] = after[v,s] - after[v,s+1]
//   out[e,s]  if the producer is at s and some reader is not
//   in[e,s]   if a reader is at s and the producer is not
//   y[s,c]    a device of class c works at s; then load and memory of the blocks at s are within
//             that class's limits
//
// Contiguity is in the variables, devices that are alike have no names, so there is nothing to tell
// apart. On wide graphs that is worth a factor of ten and more against the program over devices
// (placement_program.h). CP-SAT solves it without linear relaxation, which sees no transfers: every
// block can be everywhere in equal parts.
//
// Times are rounded down to whole numbers, so the bound holds; the split is valued in doubles.
// Some hundred blocks, some ten devices. No replicas, no phased training, no links of unequal
// speed.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planners/methods/ideal_program.h"
#include "planners/methods/stage_model.h"
#include "planners/planner.h"

namespace placewright::throughput {

// Why the program cannot state the model; empty: it can.
std::string refuses_stage_program(const StageModel& model);

struct StageProgramResult {
  std::optional<Split> split;  // its value is not filled in
  double lower_bound = 0;
  bool infeasible = false;  // proved: no split keeps the rules with a value below `highest`
  std::string error;
};

// Plans below `lowest` are known not to exist, those above `highest` are of no interest. `start`:
// stages in pipeline order, to begin from; may be null.
StageProgramResult solve_stage_program(const StageModel& model, double lowest, double highest,
                                       const Plan* start, Control& control);

}  // namespace placewright::throughput
