// How much longer ops take while other devices are busy.
//
// The counters of a model beside busy devices, against those of the same compiled model alone, give
// each op a factor of its own. That is worth having where ops differ, as those that wait for memory
// do from those that compute; where they do not, it only adds the noise of the counters (whole
// microseconds), and one factor for all ops, of the latencies, is better. So a trial decides: the
// model in segments, each of which is timed alone and beside the busy devices, says which of the
// two predicts better, and how far it is off.

#pragma once

#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/crowding.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"
#include "profiling/op_times.h"

namespace placewright {

// By op: of its group, drawn to `factor` where the group is so small that its counters say little,
// at least 1, and such that the times of all ops are `factor` times as long as alone. `groups`: all
// ops.
std::vector<double> factors_of_groups(const std::vector<OpGroup>& groups,
                                      const std::vector<double>& alone,
                                      const std::vector<double>& loaded, double factor);

// What a segment took, and what its ops take alone and with factors of their own: ms.
struct SegmentLoading {
  double alone = 0;
  double loaded = 0;
  double ops_alone = 0;
  double ops_loaded = 0;
};

// How far predictions for the segments are off: the sum of the differences over what all took
// beside busy devices.
double error_of_one_factor(const std::vector<SegmentLoading>& trial, double factor);
double error_of_own_factors(const std::vector<SegmentLoading>& trial);

struct Loading {
  Measured latency;     // of one inference beside busy devices
  double factor = 1;    // of the latency
  bool by_op = false;   // ops have factors of their own
  double error = 0;     // of the times that are used, in the trial
  double rejected = 0;  // of the others
  std::size_t segments = 0;
  Measured trial;               // all segments beside busy devices
  std::vector<double> factors;  // by op

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// What is tried, and where.
struct LoadingTrial {
  const NeuralModel& model;
  std::vector<OpGroup> ordered;  // all ops in groups that are executed as one, in topological order
  const Target& target;
  bool whole;  // in one segment
  const MeasureOptions& options;
};

Loading loading_of(const LoadingTrial& trial, const LoadedOps& ops, BusyDevices& busy);

}  // namespace placewright
