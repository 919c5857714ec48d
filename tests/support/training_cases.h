// Random training problems, and the best plan by going through all of them with the verifier alone.

#pragma once

#include <cstdint>

#include "problem/training.h"

namespace placewright::testing {

// At most so many layers and GPUs.
TrainingProblem random_training_problem(std::uint64_t seed, std::size_t layers, int gpus);

// The least value; infinite if there is no plan. Of a problem with one pool, replicas of a stage
// are tried in one order only: nothing depends on it.
double best_training_value(const TrainingProblem& problem);

}  // namespace placewright::testing
