// What the same cores give without us: the whole model on one device, with all cores as threads of
// one inference, and with one stream for each core; for a pipeline also with fewer streams, each of as
// many cores as a device has. Threads go where the system lets them run; with all cores of the process
// also where the backend binds them. Of several models: running/unplanned_models.h.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/execution.h"

namespace placewright {

struct Baseline {
  std::string name;      // "cpu:0 alone", "2 threads", "2 streams"
  Measured latency;      // of one inference
  Measured per_sample;   // time between two finished samples, as many at once as it takes
  bool is_plan = false;  // the plan is nothing else: its own measurement, which is not taken twice
  std::optional<Measured> total_completion = {};  // of several models, where that is the objective
};

struct ComparedRun {
  RunResult result;
  // Of one model one for each different kind of device, then threads (unless a device has all cores: the best of
  // two equal ones would be better than either) and streams over all cores of the devices.
  std::vector<Baseline> baselines;
};

// Runs a plan and its baselines in turns, until it is told apart from each of them
// (running/turns.h). A baseline that is far slower has no further turns, and that of one model does not
// stay in memory.
// Progress counts the first kTurns turns, and stays at 1 in those that follow. Throws as run_plan does.
ComparedRun run_beside_baselines(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const RunOptions& options);

}  // namespace placewright
