// A whole model as the backend runs it without a plan, in one configuration.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/part_inputs.h"
#include "backends/runtime.h"
#include "machine/targets.h"
#include "problem/measured.h"
#include "running/execution.h"
#include "running/turns.h"

namespace placewright {

struct Baseline {
  std::string name;      // "cpu:0 alone", "2 threads", "2 streams", "latency hint"
  Measured latency;      // of one inference
  Measured per_sample;   // time between two finished samples, as many at once as it takes
  bool is_plan = false;  // the plan is nothing else: its own measurement, which is not taken twice
  std::optional<Measured> total_completion = {};  // of several models, where that is the objective
  std::vector<double> turns = {};  // what is compared with the plan, by turn; of one model
};

// What the backend is told about a model that is not cut.
struct Configuration {
  Target target;                  // with the cores of all streams
  int streams = 1;                // inferences at once
  std::optional<Hint> hint = {};  // nothing but this: the backend chooses the streams

  // Which cores of equally many does not matter. What a hint chooses nobody knows.
  [[nodiscard]] bool equals(const Configuration& other) const {
    return kind_of(target) == kind_of(other.target) && streams == other.streams && !hint &&
           !other.hint;
  }
};

// Compiled when it is first measured. The model must outlive it.
class UncutSetting {
 public:
  UncutSetting(std::string name, const NeuralModel& model, Configuration configuration)
      : name_(std::move(name)), model_(model), configuration_(std::move(configuration)) {}

  void take_turn(const RunOptions& options);
  void release();

  [[nodiscard]] const Configuration& configuration() const { return configuration_; }
  // What it took over all turns. `pipeline`: it is compared with one.
  [[nodiscard]] Baseline baseline(bool pipeline) const;
  // Of a setting that the plan is.
  [[nodiscard]] Baseline baseline_of(const RunResult& plan) const;

  // Itself in a comparison: with pipelines, or with schedules. Both must outlive it.
  [[nodiscard]] Contender contender(const RunOptions& options, bool pipeline);

 private:
  [[nodiscard]] std::size_t at_once() const { return requests_.size(); }
  void compile(const RunOptions& options);
  [[nodiscard]] Measured latency(const RunOptions& options);
  void run_streams(const RunOptions& options);

  std::string name_;
  const NeuralModel& model_;
  Configuration configuration_;
  std::unique_ptr<CompiledPart> part_;
  Buffers inputs_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<Measured> latencies_;  // by turn
  std::vector<Measured> per_sample_;
};

// All cores of the devices, as one set.
Target all_cores_of(const std::vector<Target>& targets);

bool runs_every_op(const Problem& problem, DeviceId device);

// What users write: the model compiled with the latency hint or the throughput hint and nothing
// else. None where the devices have not all cores of the process, since the backend takes those.
std::vector<UncutSetting> hint_settings(const Problem& problem, const NeuralModel& model);

}  // namespace placewright
