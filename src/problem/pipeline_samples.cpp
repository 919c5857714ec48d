#include "problem/pipeline_samples.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

// The first time from `earliest` on that is `offset` after the start of a period.
double in_period(double offset, double earliest, double period) {
  const double periods = period > 0 ? std::ceil((earliest - offset) / period - 1e-9) : 0;
  return offset + std::max(0.0, periods) * period;
}

}  // namespace

std::vector<PipelineSample> pipeline_samples(const Plan& plan, std::size_t first,
                                             std::size_t last) {
  std::vector<PipelineSample> samples;
  double enters = 0;  // sample `first` into the stage
  double leaves = 0;  // ... and out of the one before
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const auto replicas = static_cast<double>(stage.devices.size());
    if (stage.offset) enters = in_period(*stage.offset, leaves, plan.value);
    for (std::size_t sample = first; sample < last; ++sample) {
      const double start = enters + static_cast<double>(sample - first) * plan.value;
      samples.push_back({stage.devices[sample % stage.devices.size()], i, sample, start,
                         start + replicas * stage.load});
    }
    leaves = enters + replicas * stage.load;
    enters += replicas * plan.value;
  }
  return samples;
}

}  // namespace placewright
