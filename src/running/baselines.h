// What the same cores give without us: the whole model on one device, with all cores as threads of
// one inference, and with one stream for each core.

#pragma once

#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "running/execution.h"

namespace placewright {

struct Baseline {
  std::string name;     // "cpu:0 alone", "2 threads", "2 streams"
  Measured latency;     // of one inference
  Measured per_sample;  // time between two finished samples, as many at once as it takes
};

// One for each different kind of target, then threads and streams over all cores of the targets
// (where there is more than one). Runs are as long as `options` say.
std::vector<Baseline> measure_baselines(const NeuralModel& model,
                                        const std::vector<Target>& targets,
                                        const RunOptions& options);

}  // namespace placewright
