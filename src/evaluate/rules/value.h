// What `latency` and `total-completion` see in a schedule (docs/semantics.md, "schedules").

#pragma once

#include "problem/problem.h"

namespace placewright {

// `completion(model)`: the latest end of its ops; its arrival where it has none.
template <class Completion>
double total_completion(const Problem& problem, const Completion& completion) {
  double total = 0;
  for (const ModelId model : problem.models()) {
    const Model& record = problem.model(model);
    const double end = completion(model);
    // Also of a model that does not count (0 times infinity is no number).
    if (end == kInfinity) return kInfinity;
    total += record.weight * (end - record.arrival);
  }
  return total;
}

}  // namespace placewright
