// Models that arrive while others run, for real: each inference is a whole model on one device, in
// a thread that is bound to the device's cores.
//
// A rule decides at every event (an arrival, a cancellation, an end) which of the waiting models
// start, and where. It may start a model on a device that is busy: they then share its cores as the
// operating system likes, as many inferences of one model as there are copies of it, each compiled
// for itself; a further one follows. A cancelled model that waits never starts, and an inference
// that has begun is stopped: its cores are free as soon as the op ends that it is at. It does not
// count.
//
// Every model is compiled for every place that it may have before the first arrival, and run once
// there, so that no rule pays for what another one finds ready.
//
// A round is disturbed if threads of ours were ready to run and had no core for more than
// kDisturbed of the time of its inferences. Where inferences share cores they wait for each other
// too, which is what the rule wanted, and where they have sets of different sizes idle helpers of
// the larger one wait: then nobody can tell.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/runtime.h"
#include "problem/problem.h"
#include "running/execution.h"

namespace placewright {

// Moments in milliseconds since the first one.
struct ArrivingModel {
  std::size_t model = 0;  // of the problem
  double time = 0;
  std::optional<double> cancelled = {};
};

// Where a model may run, under a name for rules.
struct ArrivalPlace {
  std::size_t model = 0;
  DeviceId device;
  Target target;
  std::size_t copies = 1;  // inferences at once
};

// All devices of the problem that can run all of a model, for the models that arrive. Throws
// std::invalid_argument for a device that is not here.
std::vector<ArrivalPlace> places_of(const Problem& problem,
                                    std::span<const ArrivingModel> arrivals);

enum class ArrivalStage { coming, waiting, started, complete, cancelled };

struct ArrivalState {
  ArrivalStage stage = ArrivalStage::coming;
  DeviceId device = {};  // from its start on
  double start = 0;
  double end = 0;
};

struct ArrivalStart {
  std::size_t arrival = 0;
  DeviceId device;
};

// Asked at every event; called by one thread at a time, of an end by the thread whose inference
// ended, so that what follows does not wait for another one to wake up.
using ArrivalRule =
    std::function<std::vector<ArrivalStart>(double now, std::span<const ArrivalState> states)>;

// What a backend gives without planning; `devices` are by arrival.
// Whatever has arrived, at once, whoever else is there.
ArrivalRule all_at_once(std::vector<DeviceId> devices);
// One after the other; of those that wait the one that takes the least of these `times`.
ArrivalRule shortest_first(std::vector<DeviceId> devices, std::vector<double> times);

struct ArrivalRunOptions {
  std::uint64_t seed = 1;                // of the inputs that are not given
  std::vector<NamedArrays> inputs = {};  // by model; fitted_inputs
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what)> progress = {};
};

// One run of all arrivals.
struct ArrivalRound {
  std::vector<ArrivalState> states;  // by arrival
  bool disturbed = false;
  bool watched = true;  // false: nobody can tell whether it was
};

// The models compiled, in threads that wait.
class ArrivalRunner {
 public:
  // `models` are those of the problem; all but the options must outlive it. Throws RuntimeError.
  ArrivalRunner(const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models,
                std::span<const ArrivingModel> arrivals, const std::vector<ArrivalPlace>& places,
                ArrivalRunOptions options);
  ~ArrivalRunner();
  ArrivalRunner(const ArrivalRunner&) = delete;
  ArrivalRunner& operator=(const ArrivalRunner&) = delete;

  // Nullopt: interrupted. Throws RuntimeError, and what the rule throws.
  std::optional<ArrivalRound> run(const ArrivalRule& rule);
  // Others of the same models.
  std::optional<ArrivalRound> run(std::span<const ArrivingModel> arrivals, const ArrivalRule& rule);
  // Of every copy that has run, with the unsplit model's.
  OutputCheck check_outputs();

 private:
  class State;
  std::span<const ArrivingModel> arrivals_;
  std::unique_ptr<State> state_;
};

struct ArrivalRuns {
  std::vector<std::vector<ArrivalRound>> rounds;  // by rule, repetition
  OutputCheck outputs;
  bool interrupted = false;  // then the last repetitions are missing
};

// `repeat` runs of each rule, in turns that go forth and back (running/turns.h). `rule` makes a
// fresh rule of a number below `rules` for each of its runs; `progress` is told which share is
// done.
ArrivalRuns run_arrivals(ArrivalRunner& runner, std::size_t rules,
                         const std::function<ArrivalRule(std::size_t rule)>& rule,
                         std::size_t repeat, const std::function<void(double done)>& progress = {});

}  // namespace placewright
