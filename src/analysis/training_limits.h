// What limits a training plan: its busiest replica, how much of the GPUs' time is work, and what a
// faster kind of GPU, a faster link or more memory would bring to the same plan.

#pragma once

#include <string>
#include <vector>

#include "evaluate/training_step.h"
#include "problem/training.h"

namespace placewright {

struct TrainingGain {
  std::string what;    // "GH-96 10 % faster"
  double seconds = 0;  // of the same plan's step
  double gain = 0;     // of the step, as a fraction
};

struct StageUse {
  std::size_t stage = 0;
  std::size_t busiest = 0;  // replica
  double busy = 0;          // part of the step that the busiest replica computes
  double sends = 0;         // part of the step that it sends and receives
  double spare_memory = 0;  // bytes, on the fullest GPU of the stage
};

struct TrainingExplanation {
  StepCost cost;
  std::size_t busiest_stage = 0;  // whose replica decides the steady part
  double work = 0;                // part of the GPUs' time that is compute
  std::vector<StageUse> stages;
  std::vector<TrainingGain> gains;  // the largest first
};

// `step`: how much faster, as a fraction.
TrainingExplanation explain_training_plan(const TrainingProblem& problem, const TrainingPlan& plan,
                                          double step);

}  // namespace placewright
