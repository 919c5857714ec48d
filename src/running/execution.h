// A plan carried out on the real devices: its segments compiled, one worker thread for each device,
// tensors handed over without copies wherever two devices share a memory. Between two memories a
// worker of its own copies them (prepared_plan.h), as a link does.
//
//   schedule  Each sample (one inference of every model) starts when the one before has ended.
//             Every worker runs its segments in the plan's order and waits only for the segments
//             that it reads from, and for those that have its cores before. What counts is the end
//             of the last segment.
//   pipeline  Samples stream: a worker takes the runnable segment with the oldest sample, as soon
//             as nobody else has its cores. At most
//             `slots` samples are on their way; each has memory of its own. What counts is the time
//             between two finished samples.
//
// Every slot has its own seeded input, and every output is compared with that of the unsplit model
// on the same input.
//
// Time is only worth stating if nothing else ran: a sample (a block of samples of a pipeline) that
// lost more than kDisturbed of its time to others, by the probe of a device, is left out, and where
// too many are, the measurement is not valid. Memory does not grow with the length of a run
// (run_log.h).

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "formats/array.h"
#include "problem/measured.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/accuracy.h"
#include "running/prepared_plan.h"
#include "running/segments.h"

namespace placewright {

inline constexpr double kDisturbed = 0.05;  // of a sample's time

struct RunOptions {
  int warm_up = 5;
  int repeat = 50;                       // samples that count
  double duration = 0;                   // seconds; > 0: as many samples as fit
  double at_least = 0;                   // seconds; more samples than `repeat` if those take less
  int slots = 0;                         // pipelines: samples on their way; 0: two for each segment
  bool compare = true;                   // outputs with the unsplit model's
  bool against_f32 = false;              // and those with f32's
  std::uint64_t seed = 1;                // of the inputs that are not given
  std::vector<NamedArrays> inputs = {};  // by model; fitted_inputs
  bool keep_results = false;             // what the models computed
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double done)> progress = {};  // 0 … 1

  // The inputs of a model that are given.
  [[nodiscard]] const NamedArrays& given_to(std::size_t model) const;
};

// One run of a step, in milliseconds since the start of the sample (a pipeline: of the run).
struct StepEvent {
  std::size_t step = 0;  // a segment, or behind them a copy
  DeviceId device;       // that ran the segment, or received the copy
  std::size_t sample = 0;
  double start = 0;
  double end = 0;
};

struct OutputCheck {
  bool compared = false;
  double largest_difference = 0;  // relative to the largest value of its output
  double tolerance = 0;           // that the precision of the parts justifies
  std::string worst_output;
  Precision precision =
      Precision::f32;  // what the unsplit models compute in; of several, the least
  std::optional<Accuracy> against_f32 = {};  // of the worst model; nullopt: they compute in f32

  [[nodiscard]] bool equal() const { return largest_difference <= tolerance; }
  // Keeps the worse one.
  void add(const std::optional<Accuracy>& model);
};

struct RunResult {
  std::vector<Segment> segments;
  std::vector<TensorCopy> copies;
  Measured value;           // latency, time per sample, or total completion
  std::size_t samples = 0;  // that were measured: of a pipeline in blocks, which `value` counts
  std::vector<Measured> segment_times;  // by segment
  std::vector<Measured> copy_times;     // by copy
  std::vector<Measured> completions;    // by model; schedules only
  Table<DeviceId, double> busy;         // per sample, milliseconds
  std::vector<StepEvent> events;        // of the median sample, or of a stretch of the pipeline
  OutputCheck outputs;
  std::vector<NamedArrays> results;  // by model: outputs of the first slot; if asked for
  bool interrupted = false;

  // Others had a core while it was measured: nothing of it counts.
  void reject();
};

// Throws InputError (std::invalid_argument for a device that is not here) before anything runs, and
// RuntimeError naming the segment if one fails.
RunResult run_plan(const Problem& problem, const Plan& plan,
                   const std::vector<std::unique_ptr<NeuralModel>>& models,
                   const RunOptions& options);

// A plan that stays compiled, and runs when it is given inputs or is to be measured. Not for two
// threads at once.
class LoadedPlan {
 public:
  // All three must outlive it. Throws as run_plan does.
  LoadedPlan(const Problem& problem, const Plan& plan,
             const std::vector<std::unique_ptr<NeuralModel>>& models, RunOptions options = {});
  LoadedPlan(LoadedPlan&&) noexcept;
  LoadedPlan& operator=(LoadedPlan&&) noexcept;
  ~LoadedPlan();

  // The outputs of each sample. Samples and outputs are by model; an input that a sample does not
  // give keeps its value. Those of a pipeline overlap, as many at a time as it has slots. Throws
  // std::invalid_argument as fitted_inputs does, and RuntimeError.
  std::vector<std::vector<NamedArrays>> run(std::span<const std::vector<NamedArrays>> samples);

  // What run_plan says, as often as it is asked; `compare`: with the outputs compared and kept, if
  // the options want it.
  RunResult measure(bool compare = true);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace placewright
