// What a cut costs: lost fusions, layout reorders at the border, one more call of the backend.
//
// The model is cut into 2, 4 and 8 segments of about equal time at the borders of fused groups, and
// the segments run one after the other in one thread, in turn with the whole model. What that takes
// longer, by tensor that crosses a border (least squares through the origin), is the cost of a cut.

#pragma once

#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"

namespace placewright {

struct CutTrial {
  std::size_t segments = 0;
  std::size_t transfers = 0;  // tensors that cross a border, by reading segment
  Measured time;              // of all segments, one after the other
};

struct CutCost {
  double per_transfer = 0;  // ms, not negative
  Measured whole;           // the model in one piece
  std::vector<CutTrial> trials;

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// Consecutive groups of about equal time, `count` sets of ops at most.
std::vector<OpGroup> equal_segments(const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& op_times, std::size_t count);

// `ordered`: all ops in groups, in topological order (fused_ops.h).
CutCost measure_cuts(const NeuralModel& model, const std::vector<OpGroup>& ordered,
                     const std::vector<double>& op_times, const Target& target,
                     const MeasureOptions& options);

}  // namespace placewright
