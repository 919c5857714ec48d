#include "serving/stated_models.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "problem/time_unit.h"

namespace placewright {
double time_on(const Problem& problem, ModelId model, DeviceId device) {
  double time = 0;
  for (const OpId op : problem.ops()) {
    if (problem.op(op).model == model) time += problem.time(op, device);
  }
  return time;
}

std::vector<ServedModel> stated_models(const Problem& problem) {
  if (problem.unit() == TimeUnit::none) {
    throw std::invalid_argument("the times of this problem have no unit");
  }
  std::vector<ServedModel> models;
  for (const ModelId model : problem.models()) {
    double least = std::numeric_limits<double>::infinity();
    for (const DeviceId device : problem.devices()) {
      least = std::min(least, time_on(problem, model, device));
    }
    const double whole = least * milliseconds_in(problem.unit());
    const std::string& name = problem.model(model).name;
    if (!std::isfinite(whole) || whole <= 0) {
      throw std::invalid_argument(fmt::format(
          "the model '{}' has no time: no device runs all of it, or its ops take none", name));
    }
    models.push_back({.name = name, .whole = whole});
  }
  return models;
}

double quantum_of(std::span<const ServedModel> models) {
  constexpr double kLeast = 2;
  constexpr double kMost = 10;
  double shortest = kMost;
  for (const ServedModel& model : models) shortest = std::min(shortest, model.whole);
  return std::max(shortest, kLeast);
}

std::size_t wanted_segments(double whole, double quantum, double cut) {
  const double by_quantum = std::ceil(whole / quantum - 1e-9);
  const double by_cost = std::floor(whole * kCutShare / std::max(cut, 1e-9));
  return static_cast<std::size_t>(std::max(1.0, std::min(by_quantum, by_cost)));
}

void suppose_segments(std::vector<ServedModel>& models) {
  const double quantum = quantum_of(models);
  for (ServedModel& model : models) {
    const std::size_t count = wanted_segments(model.whole, quantum, kSupposedCut);
    if (count < 2) continue;
    const double each = model.whole / static_cast<double>(count);
    model.segments.assign(count, each + kSupposedCut);
    model.segments.front() = each;
  }
}

}  // namespace placewright
