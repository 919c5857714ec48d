// What a cut costs: lost fusions, layout reorders at the border, one more call of the backend.
//
// The model is cut into 2, 4 and 8 segments of about equal time, and then at random places, always
// at the borders of fused groups, and the segments run one after the other in one thread, in turn
// with the whole model. What that takes longer is the cost of the tensors that cross a border:
//
//   by tensor           one number for each (least squares through the origin), and
//   by tensor and byte  more for a larger one: layouts are changed at every border.

#pragma once

#include <cstdint>
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
  double bytes = 0;           // of these
  Measured time;              // of all segments, one after the other
};

struct CutCost {
  double per_transfer = 0;  // ms, not negative
  double fixed = 0;         // the same by tensor and byte: ms,
  double per_byte = 0;      // and ms for each byte
  double error = 0;         // of that, relative: the median over the trials
  Measured whole;           // the model in one piece
  std::vector<CutTrial> trials;

  [[nodiscard]] double of(double bytes) const { return fixed + bytes * per_byte; }

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// Consecutive groups of about equal time, `count` sets of ops at most.
std::vector<OpGroup> equal_segments(const std::vector<OpGroup>& ordered,
                                    const std::vector<double>& op_times, std::size_t count);

// Segments that end at `count` - 1 random borders of groups.
std::vector<OpGroup> random_segments(const std::vector<OpGroup>& ordered, std::size_t count,
                                     std::uint64_t seed);

// `fixed`, `per_byte` and `error` from the trials.
void fit_by_byte(CutCost& cost);

// `ordered`: all ops in groups, in topological order (fused_ops.h).
CutCost measure_cuts(const NeuralModel& model, const std::vector<OpGroup>& ordered,
                     const std::vector<double>& op_times, const Target& target,
                     const MeasureOptions& options);

}  // namespace placewright
