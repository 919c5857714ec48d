// Speed-ups: how much faster an op runs on a device than on the reference, the CPU.
//
//   speed_up(op, d) = time(op, reference) / time(op, d)
//
// The reference is the host's kind or one called a CPU (coarsen/coarsening.h). An op that it cannot
// run is measured against the slowest kind that can. Both times 0: 1; only the divisor 0: infinite;
// not supported: 0.

#pragma once

#include <vector>

#include "problem/problem.h"

namespace placewright {

class SpeedUps {
 public:
  explicit SpeedUps(const Problem& problem);

  [[nodiscard]] double of(OpId op, DeviceId device) const;
  [[nodiscard]] double reference_time(OpId op) const { return reference_[op]; }
  [[nodiscard]] bool is_reference(DeviceId device) const {
    return problem_.kind_of(device) == kind_;
  }
  // The greatest over the devices that may run it.
  [[nodiscard]] double best(OpId op) const;
  // Mean over the ops of a model that the device may run; 0 where it cannot run all of them.
  [[nodiscard]] double mean(ModelId model, DeviceId device) const;

 private:
  const Problem& problem_;
  KindId kind_;
  Table<OpId, double> reference_;
  Rows<ModelId, OpId> ops_;
};

// reference / time with the rules above.
double ratio_of_times(double reference, double time);

}  // namespace placewright
