// Models that arrive while others run, for real: each inference is a whole model on one device, in a
// thread that is bound to the device's cores.
//
// A rule decides at every event (an arrival, a cancellation, an end) which of the waiting models
// start, and where. It may start a model on a device that is busy: two different models then share
// its cores as the operating system likes, and two inferences of one model on one device follow each
// other. A cancelled model that waits never starts, and an inference that has begun is stopped: its
// cores are free as soon as the op ends that it is at (in the simulation, analysis/online.h, a model
// that has begun runs on). It does not count.
//
// Every model is compiled for every device that it may run on before the first arrival, and run once
// there, so that no rule pays for what another one finds ready. All rules run the same arrivals, in
// turns that go forth and back (running/turns.h), as often as asked.

#pragma once

#include <atomic>
#include <cstddef>
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

// Asked at every event; called by one thread at a time, of an end by the thread whose inference ended, so
// that what follows does not wait for another one to wake up.
using ArrivalRule =
    std::function<std::vector<ArrivalStart>(double now, std::span<const ArrivalState> states)>;

struct ArrivalRunOptions {
  std::size_t repeat = 1;  // of every rule, in turn
  std::uint64_t seed = 1;  // of the inputs
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what)> progress = {};
};

struct ArrivalRuns {
  std::vector<std::vector<std::vector<ArrivalState>>> states;  // by rule, repetition, arrival
  OutputCheck outputs;
  bool interrupted = false;  // then the last repetitions are missing
};

// The devices of the problem on which all ops of the model may run.
std::vector<DeviceId> devices_for(const Problem& problem, ModelId model);

// `models` are those of the problem. `rule` makes a fresh rule of a number below `rules` for each of its
// runs. Throws RuntimeError, and std::invalid_argument for a device that is not here.
ArrivalRuns run_arrivals(const Problem& problem,
                         const std::vector<std::unique_ptr<NeuralModel>>& models,
                         std::span<const ArrivingModel> arrivals, std::size_t rules,
                         const std::function<ArrivalRule(std::size_t rule)>& rule,
                         const ArrivalRunOptions& options);

}  // namespace placewright
