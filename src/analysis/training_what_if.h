// Other clusters for the same training: each pool left out, with a node less, a node more and twice
// its nodes, and an eighth, a quarter and a half of all. Each is planned anew. A larger cluster may
// run the plan of a smaller one, so its answer is never worse.

#pragma once

#include <string>
#include <vector>

#include "planners/training/training_planner.h"

namespace placewright {

struct TrainingVariant {
  std::string name;         // "as it is", "without GH-96@a"
  std::vector<int> counts;  // nodes of each pool of the problem
  bool planned = false;
  int gpus = 0;  // of the plan
  double seconds = 0;
  double price = 0;
  bool efficient =
      false;  // no other variant is better in one of time and price and as good in both
};

// `limits` are for each variant.
std::vector<TrainingVariant> vary_training_cluster(const TrainingProblem& problem,
                                                   const TrainingLimits& limits);

}  // namespace placewright
