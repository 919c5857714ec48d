#include "planning/doubtful_gain.h"

#include <algorithm>

#include "planning/uncut_plan.h"
#include "problem/cost_source.h"

namespace placewright {
namespace {

bool cuts_a_model(const Problem& problem, const Plan& plan) {
  if (!plan.schedule) return plan.stages.size() > 1;
  return std::ranges::any_of(problem.tensors(), [&](TensorId tensor) {
    const DeviceId home = plan.placement[problem.producer(tensor)];
    return std::ranges::any_of(problem.consumers(tensor),
                               [&](OpId reader) { return plan.placement[reader] != home; });
  });
}

}  // namespace

std::optional<Plan> plan_instead_of_doubtful(const Problem& problem, const Plan& plan) {
  if (cost_source(problem.draft()) != CostSource::estimated) return std::nullopt;
  if (!cuts_a_model(problem, plan)) return std::nullopt;
  std::optional<Plan> uncut = best_uncut_plan(problem);
  const bool doubtful = uncut && uncut->value <= plan.value * (1 + kErrorOfEstimatedRatios);
  return doubtful ? std::move(uncut) : std::nullopt;
}

}  // namespace placewright
