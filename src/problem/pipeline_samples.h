// A pipeline as it was predicted, sample by sample, in the steady state.
//
// A new sample enters each `value`. A stage with r replicas has r x value for each sample: sample k
// starts in stage i at (k + r_0 + … + r_{i-1}) x value, on replica k mod r, and takes r x load.
// Where devices share resources, a stage starts at its offset in the first period in which the
// stage before it is done.

#pragma once

#include <cstddef>
#include <vector>

#include "problem/plan.h"

namespace placewright {

struct PipelineSample {
  DeviceId device;
  std::size_t stage = 0;
  std::size_t sample = 0;
  double start = 0;  // the first of these samples enters at 0
  double end = 0;
};

// Samples `first` … `last` - 1, stage by stage; none for plans without stages.
std::vector<PipelineSample> pipeline_samples(const Plan& plan, std::size_t first, std::size_t last);

}  // namespace placewright
