// What annealing minimises in the place of the largest load, which few moves change: the p-norm of
// the loads of all devices, p growing from 8 to 64 in a cooling.

#pragma once

#include <cmath>

#include "evaluate/pipeline_evaluator.h"

namespace placewright::throughput {

class LoadNorm {
 public:
  // Of the evaluator's placement; infinite where it is impossible.
  template <class Devices>
  [[nodiscard]] double of(const PipelineEvaluator& evaluator, const Devices& devices) const {
    if (evaluator.impossible() > 0) return kInfinity;
    const double top = evaluator.value();
    if (!(top > 0)) return 0;
    double sum = 0;
    for (const DeviceId device : devices) sum += std::pow(evaluator.load(device) / top, power_);
    return top * std::pow(sum, 1 / power_);
  }

  // When this share of a cooling is over. True: norms are not comparable with those before.
  bool sharpen(double share) {
    const double power = kFirstPower * std::pow(kPowerGrowth, share);
    if (power <= power_ * kLeastGrowth) return false;
    power_ = power;
    return true;
  }

 private:
  static constexpr double kFirstPower = 8;
  static constexpr double kPowerGrowth = 8;
  static constexpr double kLeastGrowth = 1.05;  // less is not worth another look at all loads

  double power_ = kFirstPower;
};

}  // namespace placewright::throughput
