// The tuning loop: plan, run, correct the costs by what was measured, and plan again.
//
// A round plans with the costs known so far and runs the plan for real. It is the last one when
// predicted and measured agree, when the same placement keeps coming, when there is no plan, or when
// the rounds are used up. Then one more round runs the model uncut: whole on the best device or, for
// throughput, on as many equal ones as may share it; this is what the backend gives without a plan.
// It is repeated, twice at most, if others disturbed it.
// The best round is the one that was measured fastest, not the last one, so that tuning never ends
// with a plan that is slower than no plan.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan_request.h"
#include "problem/problem.h"
#include "running/execution.h"

namespace placewright {

// A prediction this close to what was measured, relatively, needs no correction.
inline constexpr double kAgreement = 0.05;

// A cut plan must be faster than the uncut model by more than this, relatively: less is the noise of
// a careful measurement.
inline constexpr double kLeastGain = 0.01;

struct TuneRequest {
  PlanRequest plan = {};
  std::size_t rounds = 5;
  int repeat = 20;  // samples of each run
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress = {};  // what is going on, in a few words
};

struct TuningRound {
  Problem problem;
  PlanOutcome outcome;
  RunResult result;
  bool uncut = false;

  [[nodiscard]] double predicted() const { return outcome.value(); }
  [[nodiscard]] double measured() const { return result.value.median; }
  [[nodiscard]] bool valid() const { return result.value.valid(); }
  // Relative to what was measured.
  [[nodiscard]] double error() const { return predicted() / measured() - 1; }
  // The costs as this round's measurements correct them.
  [[nodiscard]] ProblemDraft corrected_draft() const;
};

struct Tuning {
  std::vector<TuningRound> rounds;
  std::string ending;  // why no further round was planned
  bool interrupted = false;

  // The fastest of the rounds whose measurement is valid and whose outputs are right; nullptr if
  // there is none.
  [[nodiscard]] const TuningRound* best() const;
  // The round that ran the model uncut; nullptr if there is none, or if its measurement is not
  // valid.
  [[nodiscard]] const TuningRound* uncut() const;
};

// `costs` must come from models that can be run here. Throws as run_plan does.
Tuning tune(ProblemDraft costs, TuneRequest request);

}  // namespace placewright
