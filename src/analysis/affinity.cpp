#include "analysis/affinity.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "planners/methods/speed_up.h"

namespace placewright {

std::vector<SpeedUpProfile> speed_up_profiles(const Problem& problem) {
  std::vector<SpeedUpProfile> profiles(problem.model_count());
  for (const ModelId model : problem.models()) {
    profiles[model.index()].name = problem.model(model).name;
  }
  const SpeedUps speed_ups(problem);
  for (const OpId op : problem.topological_order()) {
    double best = 0;
    bool elsewhere = false;
    for (const DeviceId device : problem.devices()) {
      if (speed_ups.is_reference(device) || !problem.allowed(op, device)) continue;
      best = std::max(best, speed_ups.of(op, device));
      elsewhere = true;
    }
    SpeedUpProfile& profile = profiles[problem.op(op).model.index()];
    profile.speed_ups.push_back(elsewhere ? best : 1);
    profile.types.push_back(problem.op(op).type);
  }
  return profiles;
}

std::optional<double> affinity(const SpeedUpProfile& a, const SpeedUpProfile& b) {
  const std::set<std::string> first(a.types.begin(), a.types.end());
  std::set<std::string> all = first;
  std::size_t common = 0;
  for (const std::string& type : std::set<std::string>(b.types.begin(), b.types.end())) {
    common += first.count(type);
    all.insert(type);
  }
  if (common == 0) return std::nullopt;
  double difference = 0;
  for (std::size_t k = 0; k < std::min(a.speed_ups.size(), b.speed_ups.size()); ++k) {
    // Two ops that take no time on the accelerator differ by nothing.
    if (a.speed_ups[k] == b.speed_ups[k]) continue;
    difference += std::fabs(a.speed_ups[k] - b.speed_ups[k]);
  }
  return difference * static_cast<double>(all.size()) / static_cast<double>(common);
}

std::vector<std::vector<std::optional<double>>> affinity_matrix(
    const std::vector<SpeedUpProfile>& models) {
  std::vector<std::vector<std::optional<double>>> matrix(models.size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (std::size_t j = 0; j < models.size(); ++j) {
      matrix[i].push_back(affinity(models[i], models[j]));
    }
  }
  return matrix;
}

}  // namespace placewright
