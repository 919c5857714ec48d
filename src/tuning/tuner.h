// The tuning loop: plan, run, correct the costs by what was measured, and plan again; then let the
// model uncut have the last word.
//
// A round plans with the costs known so far and runs the plan for real. It is the last one when
// predicted and measured agree, when the same placement keeps coming, when there is no plan, or
// when the rounds are used up.
//
// Then the final: the fastest round that cut the model or had several side by side, and the model
// uncut on each kind of device that may be the best for it (of several models one after the other,
// the shortest first; for throughput on as many equal devices as may share it), which is what the
// backend gives without a plan. Beside them runs what users write: the model compiled with the
// backend's hints and nothing else. With all cores of the process there are two of each: the system
// moves the threads, or the backend binds them (`cpu:0-1:pinned`). All of them stay compiled and
// run in turns (running/turns.h), so that they meet the same machine, until the fastest is told
// apart from the others. The cut plan is kept only if it is measured faster there, by more than the
// noise. If others disturbed the final it is repeated, twice at most; if all was disturbed the
// model stays uncut. So tuning never ends with a plan that is slower than no plan.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan_request.h"
#include "problem/problem.h"
#include "running/baselines.h"
#include "running/execution.h"

namespace placewright {

// A prediction this close to what was measured, relatively, needs no correction.
inline constexpr double kAgreement = 0.05;

// A cut plan must be faster than the uncut model by more than this, relatively: less is the noise
// of a careful measurement.
inline constexpr double kLeastGain = 0.01;

struct TuneRequest {
  PlanRequest plan = {};
  std::size_t rounds = 5;
  int repeat = 20;      // samples of each run
  double at_least = 0;  // seconds of each finalist; more samples if they take less
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress = {};  // what is going on, in a few words
};

// An uncut model that is predicted to take more than this times as long as the fastest one is not
// in the final. Much more than the final itself forgives: a profile that was measured beside other
// work is off by far, and what is slow costs the final no more than two turns.
inline constexpr double kNoRival = 3;

struct TuningRound {
  Problem problem;
  PlanOutcome outcome;
  RunResult result;
  bool uncut = false;  // one segment for each model, all on one device
  bool out = false;    // of the final: clearly slower than the fastest, and had not all turns

  [[nodiscard]] double predicted() const { return outcome.value(); }
  [[nodiscard]] double measured() const { return result.value.median; }
  [[nodiscard]] bool valid() const { return result.value.valid(); }
  // Relative to what was measured.
  [[nodiscard]] double error() const { return predicted() / measured() - 1; }
  // The costs as this round's measurements correct them.
  [[nodiscard]] ProblemDraft corrected_draft() const;
  // The same plan under these costs, without a bound: that was for others. What the segments do not
  // show (the way from one to the next, and from one sample to the next) is spread over the ops, so
  // that the plan is predicted to take what it took if that is valid.
  [[nodiscard]] TuningRound with_corrected_costs() const;

 private:
  [[nodiscard]] TuningRound under(ProblemDraft costs) const;
};

struct Tuning {
  std::vector<TuningRound> rounds;
  std::string ending;                  // why no further round was planned
  std::vector<TuningRound> finalists;  // with what they took in the final
  std::vector<Baseline> hints;  // what the backend took in the final with a hint and nothing else
  bool interrupted = false;

  // The fastest finalist that is uncut, its measurement valid or not: others can only have made it
  // slower. One that is out only if all of them are.
  [[nodiscard]] const TuningRound* uncut() const;
  // A hint that was clearly faster there than what is kept; nullptr: none was.
  [[nodiscard]] const Baseline* faster_hint() const;
  // What is kept; nullptr if there was no final.
  [[nodiscard]] const TuningRound* best() const;
};

// The model uncut on each kind of device, as far as that may be the fastest, and with all cores of
// the process also bound otherwise; not yet run.
std::vector<TuningRound> uncut_finalists(const ProblemDraft& costs);

// `costs` must come from models that can be run here. Throws as run_plan does.
Tuning tune(ProblemDraft costs, TuneRequest request);

}  // namespace placewright
