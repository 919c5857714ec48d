// Files of training on clusters: our own JSON, version 1. A plan holds its problem whole, since a
// plan without the times of its layers says little.
//
//   {"placewright": "training-problem", "version": 1,
//    "name": "OPT-350", "objective": "step-time", "batch": 512,
//    "sizes": [{"degree": 4, "parameters": […], "activations": […], "outputs": […]}],
//    "kinds": [{"name": "GH-96", "memory": 102625181696, "price": 4,
//               "times": [{"degree": 4, "micro_batch": 8,
//                          "forward": […], "backward": […], "update": […]}]}],
//    "pools": [{"kind": "GH-96", "zone": "a", "gpus": 4, "count": 8}],
//    "links": [{"from": "GH-96@a", "to": "GH-96@a", "gpus": 4, "curve": [0, 0, 90], "best": 9e10}],
//    "constants": {…}}
//
//   {"placewright": "training-plan", "version": 1, "problem": {…},
//    "planner": "by-hand", "value": 2.3, "lower_bound": 2.2, "gap": 0.04, "micro_batch": 8,
//    "stages": [{"layers": [0, 12],
//                "replicas": [{"pool": "GH-96@a", "degree": 4, "micro_batches": 16}]}]}

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problem/training.h"

namespace placewright {

// Whether the text says that it is a file of this kind ("training-problem", "training-plan").
bool is_training_file(std::string_view text, std::string_view kind);

struct TrainingFile {
  TrainingProblem problem;
  std::optional<TrainingAnswer> answer;  // of a plan
  std::vector<std::string> warnings;
};

// Both throw InputError. `path` is for messages.
TrainingFile read_training_problem(std::string_view text, const std::string& path);
TrainingFile read_training_plan(std::string_view text, const std::string& path);

std::string write_training_problem(const TrainingProblem& problem);
std::string write_training_plan(const TrainingProblem& problem, const TrainingAnswer& answer);

}  // namespace placewright
