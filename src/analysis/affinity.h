// Affinity: which models to put together on one machine (Talos).
//
//   d(a, b) = sum over k <= min(|a|, |b|) of |s(a, k) - s(b, k)|
//             / (common op types / all op types)
//
// with s(a, k) the speed-up of the k-th op of model a. Large: where one gains from the accelerator
// the other does not, so they complement each other. Models without a common op type are not
// comparable. O(ops) for each pair.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// A model as affinity sees it.
struct SpeedUpProfile {
  std::string name;
  std::vector<double> speed_ups;   // in order of the ops
  std::vector<std::string> types;  // of the ops
};

// One for each model of the problem: ops in topological order, each with its best speed-up on
// anything but the reference kind (1 where there is nothing else).
std::vector<SpeedUpProfile> speed_up_profiles(const Problem& problem);

std::optional<double> affinity(const SpeedUpProfile& a, const SpeedUpProfile& b);

// All pairs, by row.
std::vector<std::vector<std::optional<double>>> affinity_matrix(
    const std::vector<SpeedUpProfile>& models);

}  // namespace placewright
