// A plan carried out on the real devices: its segments compiled, one worker thread for each device,
// tensors handed over without copies.
//
//   schedule  Each sample (one inference of every model) starts when the one before has ended.
//             Every worker runs its segments in the plan's order and waits only for the segments
//             that it reads from. What counts is the end of the last segment.
//   pipeline  Samples stream: a worker takes the runnable segment with the oldest sample. At most
//             `slots` samples are on their way; each has memory of its own. What counts is the time
//             between two finished samples.
//
// Every slot has its own input, and every output is compared with that of the unsplit model on the
// same input.
//
// Time is only worth stating where nothing else ran: a worker on one core compares the processor
// time of its thread with the clock; a sample (a block of samples of a pipeline) that lost more
// than kDisturbed of its time to others is left out, and where too many are, the measurement is not
// valid.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "machine/targets.h"
#include "problem/plan.h"
#include "problem/problem.h"
#include "running/segments.h"

namespace placewright {

inline constexpr double kDisturbed = 0.05;    // of a sample's time
inline constexpr double kMostRejected = 0.5;  // of the samples
inline constexpr double kOutputTolerance = 1e-5;

struct RunOptions {
  int warm_up = 5;
  int repeat = 50;      // samples that count
  double duration = 0;  // seconds; > 0: as many samples as fit
  int slots = 0;        // pipelines: samples on their way; 0: two for each segment
  bool compare = true;  // outputs with the unsplit model's
  std::uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double done)> progress = {};  // 0 … 1
};

// A time measured many times, in milliseconds.
struct Measured {
  double median = 0;
  double low = 0;   // first decile
  double high = 0;  // last decile
  int kept = 0;
  int rejected = 0;

  [[nodiscard]] bool valid() const {
    return kept > 0 && rejected <= kMostRejected * (kept + rejected);
  }
  [[nodiscard]] double spread() const { return median > 0 ? (high - low) / median : 0; }
};

Measured measured(std::vector<double> kept, int rejected);

// One run of a segment, in milliseconds since the start of the sample (a pipeline: of the run).
struct SegmentEvent {
  std::size_t segment = 0;
  DeviceId device;
  std::size_t sample = 0;
  double start = 0;
  double end = 0;
};

struct OutputCheck {
  bool compared = false;
  double largest_difference = 0;  // relative to the largest value of its output
  std::string worst_output;

  [[nodiscard]] bool equal() const { return largest_difference <= kOutputTolerance; }
};

struct RunResult {
  std::vector<Segment> segments;
  Measured value;                       // latency, time per sample, or total completion
  std::vector<Measured> segment_times;  // by segment
  std::vector<Measured> completions;    // by model; schedules only
  Table<DeviceId, double> busy;         // per sample, milliseconds
  std::vector<SegmentEvent> events;     // of the median sample, or of a stretch of the pipeline
  OutputCheck outputs;
  bool interrupted = false;
};

// The models of a problem, in its order. Throws InputError where one is missing, has changed, or
// has other ops than the problem.
std::vector<std::unique_ptr<NeuralModel>> models_of(const Problem& problem, const Runtime& runtime);

// Throws InputError (std::invalid_argument for a device that is not here) before anything runs, and
// RuntimeError naming the segment where one fails.
RunResult run_plan(const Problem& problem, const Plan& plan,
                   const std::vector<std::unique_ptr<NeuralModel>>& models, const Runtime& runtime,
                   const RunOptions& options);

}  // namespace placewright
