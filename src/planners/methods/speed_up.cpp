#include "planners/methods/speed_up.h"

#include <algorithm>
#include <utility>

#include "coarsen/coarsening.h"

namespace placewright {

double ratio_of_times(double reference, double time) {
  if (time == kUnsupported) return 0;
  if (time == 0) return reference == 0 ? 1 : kInfinity;
  return reference / time;
}

SpeedUps::SpeedUps(const Problem& problem)
    : problem_(problem), kind_(reference_kind(problem)), reference_(problem.op_count()) {
  std::vector<std::pair<ModelId, OpId>> pairs;
  pairs.reserve(problem.op_count());
  for (const OpId op : problem.ops()) {
    const auto& times = problem.op(op).time;
    reference_[op] = times[kind_.index()];
    if (reference_[op] == kUnsupported) {
      reference_[op] = 0;
      for (const double time : times) {
        if (time < kUnsupported) reference_[op] = std::max(reference_[op], time);
      }
    }
    pairs.emplace_back(problem.op(op).model, op);
  }
  ops_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), pairs);
}

double SpeedUps::of(OpId op, DeviceId device) const {
  return problem_.allowed(op, device) ? ratio_of_times(reference_[op], problem_.time(op, device))
                                      : 0;
}

double SpeedUps::best(OpId op) const {
  double best = 0;
  for (const DeviceId device : problem_.devices()) best = std::max(best, of(op, device));
  return best;
}

double SpeedUps::mean(ModelId model, DeviceId device) const {
  const auto ops = ops_[model];
  double total = 0;
  for (const OpId op : ops) {
    if (!problem_.allowed(op, device)) return 0;
    total += of(op, device);
  }
  return ops.empty() ? 1 : total / static_cast<double>(ops.size());
}

}  // namespace placewright
