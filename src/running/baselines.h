// What the same cores give without us: the whole model as users compile it, with the backend's
// latency hint or throughput hint alone (where the devices have all cores of the process); on one
// device, with all cores as threads of one inference, and with one stream for each core; for a
// pipeline also with fewer streams, each of as many cores as a device has. Threads go where the
// system lets them run; with all cores of the process also where the backend binds them. Of several
// models: running/unplanned_models.h.

#pragma once

#include <memory>
#include <vector>

#include "backends/runtime.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/execution.h"
#include "running/uncut_setting.h"

namespace placewright {

struct ComparedRun {
  RunResult result;
  std::vector<double>
      turns;  // the plan's value, by turn: those of a baseline are of the same turns
  // Of one model one for each different kind of device, then the hints, then threads (unless a
  // device has all cores: the best of two equal ones would be better than either) and streams over
  // all cores of the devices.
  std::vector<Baseline> baselines;
};

// Runs a plan and its baselines in turns, until it is told apart from each of them
// (running/turns.h). A baseline that is far slower has no further turns, and that of one model does
// not stay in memory. Progress counts the first kTurns turns, and stays at 1 in those that follow.
// Throws as run_plan does.
ComparedRun run_beside_baselines(const Problem& problem, const Plan& plan,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const RunOptions& options);

}  // namespace placewright
