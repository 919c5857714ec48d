// What the planners over down-sets share: turning a split into a plan, and the best split along
// linear orders.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planners/methods/ideal_program.h"
#include "planners/methods/stage_model.h"
#include "planners/planner.h"
#include "problem/plan.h"

namespace placewright::throughput {

// The model that the contiguous planners work on: dominated blocks merged.
StageModel contiguous_model(const Problem& problem);

// The stages on devices of their classes, in order. Nullopt if a transfer would have no link.
std::optional<Plan> plan_of_split(const StageModel& model, const Split& split);

// The best split whose ideals are prefixes of the model's linear orders, by a cutoff that grows
// from `bound`. Complete and without a split: there is none along these orders.
ProgramResult best_linear_split(const StageModel& model, std::size_t random_orders, double bound,
                                Control& control);

// The same along given orders.
ProgramResult best_split_along(const StageModel& model,
                               const std::vector<std::vector<std::uint32_t>>& orders, double bound,
                               Control& control);

// Why a planner over jointly contiguous splits cannot serve the problem; empty: it can.
inline constexpr Features kContiguousKnows =
    kCommonFeatures - Features{Feature::free_sets, Feature::convex_sets, Feature::peak_memory};
std::string refuses_contiguous(const Problem& problem);

// Cutoffs grow by doubling their excess over the bound; beyond this one they jump to the highest.
inline constexpr double kLargeExcess = 64;

// A cutoff above every plan's value.
double highest_cutoff(const StageModel& model);
// A cutoff that lets a plan of this value pass, however it is rounded.
constexpr double cutoff_above(double value) {
  return value * (1 + 1e-9) + 1e-12;
}

}  // namespace placewright::throughput
