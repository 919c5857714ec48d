#include "report/pipeline_samples.h"

namespace placewright {

std::vector<PipelineSample> pipeline_samples(const Plan& plan, std::size_t first,
                                             std::size_t last) {
  std::vector<PipelineSample> samples;
  double enters = 0;  // sample `first` into the stage
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const auto replicas = static_cast<double>(stage.devices.size());
    for (std::size_t sample = first; sample < last; ++sample) {
      const double start = enters + static_cast<double>(sample - first) * plan.value;
      samples.push_back({stage.devices[sample % stage.devices.size()], i, sample, start,
                         start + replicas * stage.load});
    }
    enters += replicas * plan.value;
  }
  return samples;
}

}  // namespace placewright
