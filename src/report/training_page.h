// The curves of a training as one page: reward, distance to the bound and entropy over episodes.

#pragma once

#include <span>
#include <string>

namespace placewright {

// One row of the curves.
struct TrainingPoint {
  double episode = 0;
  double reward = 0;
  double best_over_bound = 0;  // 0: no bound is known
  double entropy = 0;
};

// A self-contained HTML page. Many episodes are drawn as means over stretches.
std::string training_page(const std::string& title, std::span<const TrainingPoint> points);

}  // namespace placewright
