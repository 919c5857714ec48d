// Segments of a model that run one after the other on one target.

#pragma once

#include <memory>
#include <vector>

#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "profiling/fused_ops.h"
#include "profiling/measurement.h"

namespace placewright {

// What the runs of a chain took.
struct ChainRuns {
  std::vector<TimedRun> runs;
  std::vector<std::vector<double>> times;  // by run, segment: ms

  // By segment, the median over the undisturbed runs (over the shortest where there are none).
  [[nodiscard]] std::vector<double> segment_times() const;
};

// Each segment reads what those before it made.
class SegmentChain {
 public:
  // The inputs, by input of the model, must outlive it.
  SegmentChain(const NeuralModel& model, std::vector<OpGroup> segments, const Target& target,
               const Buffers& inputs);

  void run();
  void run_watched(RunWatch& watch, ChainRuns& runs);

  [[nodiscard]] const std::vector<OpGroup>& segments() const { return segments_; }
  [[nodiscard]] const CompiledPart& part(std::size_t segment) const { return *parts_[segment]; }

 private:
  std::vector<OpGroup> segments_;
  std::vector<std::unique_ptr<CompiledPart>> parts_;
  std::vector<std::unique_ptr<Request>> requests_;  // gone before the parts
};

}  // namespace placewright
