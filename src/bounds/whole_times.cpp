#include "bounds/whole_times.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "problem/move_time.h"

namespace placewright {
namespace {

constexpr double kMostQuestions = 1e6;  // pairs of devices for tensors
constexpr double kMostSteps = 1e9;      // of a time: beyond, a step is within what proofs tolerate
constexpr int kMostDigits = 6;
constexpr double kRounding = 1e-9;
constexpr double kNearlyWhole = 1e-6;

std::vector<double> times_of(const Problem& problem) {
  std::vector<double> times;
  for (const ModelId model : problem.models()) times.push_back(problem.model(model).arrival);
  for (const DeviceId device : problem.devices()) {
    for (const OpId op : problem.ops()) {
      if (problem.allowed(op, device)) times.push_back(problem.time(op, device));
    }
    for (const TensorId tensor : problem.tensors()) {
      if (problem.has_overheads()) {
        times.push_back(problem.send_overhead(tensor, device));
        times.push_back(problem.receive_overhead(tensor, device));
      }
      if (problem.interconnect() == InterconnectKind::host) {
        times.push_back(problem.host_time(tensor));
        continue;
      }
      for (const DeviceId to : problem.devices()) {
        const double time = move_time(problem, tensor, device, to);
        if (time < kInfinity) times.push_back(time);
      }
    }
  }
  return times;
}

bool whole(const std::vector<double>& times, double step) {
  return std::ranges::all_of(times, [&](double time) {
    const double steps = time / step;
    return steps < kMostSteps && std::abs(steps - std::round(steps)) <= kRounding * steps;
  });
}

}  // namespace

double step_of_latency(const Problem& problem) {
  if (problem.objective() != Objective::latency || problem.has_sharing()) return 0;
  const auto devices = static_cast<double>(problem.device_count());
  const double questions = devices * (static_cast<double>(problem.op_count()) +
                                      devices * static_cast<double>(problem.tensor_count()));
  if (questions > kMostQuestions) return 0;
  const std::vector<double> times = times_of(problem);
  double step = 1;
  for (int digits = 0; digits <= kMostDigits; ++digits, step /= 10) {
    if (whole(times, step)) return step;
  }
  return 0;
}

Certificate on_step(Certificate bound, double step) {
  if (step == 0 || !std::isfinite(bound.lower_bound)) return bound;
  const double steps = bound.lower_bound / step;
  if (steps > kMostSteps) return bound;
  const double next = std::ceil(steps - kNearlyWhole) * step;
  if (next > bound.lower_bound) bound.lower_bound = next;
  return bound;
}

}  // namespace placewright
