// The tuning loop: profile, plan, run, correct the costs by what was measured, and plan again.
//
// A round plans with the costs known so far and runs the plan for real. It is the last one when
// predicted and measured agree, when the same placement keeps coming, when there is no plan, or when
// the rounds are used up. The best round is the one that was measured fastest, not the last one.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan_request.h"
#include "problem/problem.h"
#include "profiling/profile.h"
#include "running/execution.h"

namespace placewright {

// A prediction this close to what was measured, relatively, needs no correction.
inline constexpr double kAgreement = 0.05;

struct TuneRequest {
  ProfileRequest profile;
  std::optional<Objective> objective = {};  // absent: the profile's
  PlanRequest plan = {};
  std::size_t rounds = 5;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress = {};  // what is going on, in a few words
};

struct TuningRound {
  Problem problem;
  PlanOutcome outcome;
  RunResult result;

  [[nodiscard]] double predicted() const { return outcome.value(); }
  [[nodiscard]] double measured() const { return result.value.median; }
  [[nodiscard]] bool valid() const { return result.value.valid(); }
  // Relative to what was measured.
  [[nodiscard]] double error() const { return predicted() / measured() - 1; }
  // The costs as this round's measurements correct them.
  [[nodiscard]] ProblemDraft corrected_draft() const;
};

struct Tuning {
  Profile profile;
  std::vector<TuningRound> rounds;
  std::string ending;  // why the last round was the last
  bool interrupted = false;

  // The fastest of the rounds whose measurement is valid and whose outputs are right; nullptr if
  // there is none.
  [[nodiscard]] const TuningRound* best() const;
};

// Returns nullopt if it was interrupted before anything was measured.
std::optional<Tuning> tune(TuneRequest request);

}  // namespace placewright
