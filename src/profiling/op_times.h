// How long each op of a model takes on one target, from the backend's own counters.
//
// The counters are a mean over all runs since the part was compiled, cut to whole microseconds. So
// the total of n runs is n times the mean, and the time of the undisturbed runs is found by taking
// totals at both ends of each stretch of them: warm-up and disturbed runs drop out, and the
// rounding costs about a microsecond where the stretches are long. What the counters miss (small
// ops, the way in and out) is spread over the ops in proportion, so that their sum is the measured
// latency.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/crowding.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"

namespace placewright {

// Means over all runs so far, by node, read after each run: means[r] after run r.
struct CounterReadings {
  std::size_t runs_before = 0;             // of the part, before the first run
  std::vector<double> means_before;        // after them
  std::vector<std::vector<double>> means;  // by run
};

// The mean over the undisturbed runs (over all where there is none), by node.
std::vector<double> undisturbed_means(const CounterReadings& readings,
                                      const std::vector<TimedRun>& runs);

struct MeasuredOps {
  std::vector<ExecutedNode> executed;
  std::vector<double> milliseconds;  // by op; of all ops of the graph, 0 where not measured
  std::vector<double> spread;        // by op, relative; from the two halves of the runs
  Measured latency;                  // of one inference
  Precision precision = Precision::by_default;  // that the part computes in
  double counted = 0;  // sum of the counters: latency / counted is the scale
};

struct LoadedOps {
  MeasuredOps alone;
  std::optional<MeasuredOps> loaded;  // while other devices are busy; nullopt: there are none
};

// `ops`: those that the target can run. The part is compiled once for both: compiled once more, it
// is 1 % faster or slower.
LoadedOps measure_ops(const NeuralModel& model, std::span<const std::size_t> ops,
                      const Target& target, BusyDevices& busy, const MeasureOptions& options);

// Moves the times of each group to the op that bears them (fused_ops.h).
void gather_times(const ModelGraph& graph, const std::vector<OpGroup>& groups, MeasuredOps& times);

}  // namespace placewright
