// Operators that break a valid plan, each in one way, so that the finding is known by construction.

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "problem/problem.h"
#include "support/random_problem.h"
#include "verify/verifier.h"

namespace placewright::testing {

// A valid plan before it is broken. Some operators break the problem instead: the same plan on
// devices with less memory or fewer lanes.
struct Mutant {
  const Problem& problem;
  ProblemDraft draft;
  Plan plan;
  Statement statement;
  double horizon;  // the end of all
  RandomSource& random;
};

// Answers what the verifier must find; nothing where the plan has nothing to break in this way.
struct MutationOperator {
  const char* name;
  std::optional<ViolationCode> (*apply)(Mutant&);
};

std::span<const MutationOperator> operators_of_any_plan();
std::span<const MutationOperator> operators_of_schedules();
std::span<const MutationOperator> operators_of_pipelines();
std::span<const MutationOperator> operators_of_calls();

// One of them, drawn; nothing where there is none.
template <class Each>
std::optional<Each> one_of(const std::vector<Each>& all, RandomSource& random) {
  if (all.empty()) return std::nullopt;
  return all[random.below(all.size())];
}

// Whether two users of their devices' resources take more of one than there is.
bool exceed_together(const Problem& problem, DeviceId first, double first_share, DeviceId second,
                     double second_share);

// Every op can run where it is, and every tensor gets to its readers.
bool possible(const Problem& problem, const Placement& placement);

}  // namespace placewright::testing
