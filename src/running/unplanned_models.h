// Several models without a plan, as whoever has a backend and nothing else runs them, on all cores
// (or on a device that is no set of cores): one after the other, the shortest first, and all at
// once, each with all threads. Both are rules of running/arrival_run.h, and every sample is a run
// of all arrivals.

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/targets.h"
#include "problem/measured.h"
#include "running/arrival_run.h"
#include "running/execution.h"

namespace placewright {

class UnplannedModels {
 public:
  struct Policy {
    std::string name;
    ArrivalRule rule;
    Target target;
    std::vector<double> times;        // by model, each alone; only of models in turn
    std::vector<Measured> values;     // by turn: of the problem's objective
    std::vector<Measured> latencies;  // by turn: when the last model ends
  };

  // All but the options must outlive it. Throws as run_plan does.
  UnplannedModels(const Problem& problem, const std::vector<std::unique_ptr<NeuralModel>>& models,
                  const std::vector<Target>& targets, const RunOptions& options);

  [[nodiscard]] std::deque<Policy>& policies() { return policies_; }
  // The value of one more turn of the policy; nullopt: interrupted.
  std::optional<double> take_turn(Policy& policy, const RunOptions& options);
  // Whether the plan is nothing else.
  [[nodiscard]] bool is_policy(const Plan& plan, const Policy& policy) const;

 private:
  struct Sample {
    double value = 0;
    double latency = 0;
  };
  [[nodiscard]] Sample sample_of(const ArrivalRound& round) const;
  [[nodiscard]] std::vector<double> times_on(DeviceId place);

  const Problem& problem_;
  std::vector<ArrivingModel> arrivals_;  // one for each model
  std::unique_ptr<ArrivalRunner> runner_;
  std::deque<Policy> policies_;  // whoever has one keeps it
};

}  // namespace placewright
