// What a plan for several models means for each of them (`total-completion`).
//
// Slow-down: (completion - arrival) / the time the model takes when it has all devices to itself:
// the best of HEFT's schedule, the best single device's, what a short local search makes of the
// better one, and the model's own part of the plan. It is never below 1. NOD: ops after Talos's
// packing (planners/flow/chain_groups.h). NRO: ops that are not on a device of their best speed-up.

#pragma once

#include <cstddef>
#include <optional>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct ModelCompletion {
  double completion = 0;           // when its last op ends; its arrival where it has none
  double alone = 0;                // time taken with all devices to itself
  std::optional<double> slowdown;  // nullopt if it takes no time alone
  bool late = false;               // after its deadline
  std::size_t ops = 0;
  std::size_t packed_ops = 0;  // NOD
  std::size_t moved_ops = 0;   // NRO
};

struct CompletionReport {
  Table<ModelId, ModelCompletion> models;
  Table<DeviceId, double> idle;  // of all lanes, until the end
  std::size_t packed_ops = 0;    // NOD
  std::size_t moved_ops = 0;     // NRO
};

// The plan has a schedule.
CompletionReport completion_report(const Problem& problem, const Plan& plan);

// The model by itself on the problem's devices, from time 0, as `latency`.
ProblemDraft only_model(const Problem& problem, ModelId model);

}  // namespace placewright
