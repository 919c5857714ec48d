// The independent checker of training plans: it works out a plan's cost from the tables alone and
// shares no code with evaluate/. Both implement docs/semantics.md, "Training steps".

#pragma once

#include <string>
#include <vector>

#include "problem/training.h"

namespace placewright {

struct TrainingVerdict {
  std::vector<std::string> violations;  // sentences; empty: the plan keeps every rule
  double seconds = 0;                   // of a step; 0 where the plan's form is broken
  double price = 0;
  double memory = 0;  // bytes on the fullest GPU
};

TrainingVerdict verify_training(const TrainingProblem& problem, const TrainingPlan& plan);

// The same, and that the answer states this value and no bound above it.
TrainingVerdict verify_training(const TrainingProblem& problem, const TrainingAnswer& answer);

}  // namespace placewright
