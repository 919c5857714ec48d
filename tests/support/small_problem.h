// Problems of at most six ops that mix all rules, objectives and kinds of clusters: small enough
// for thousands of answers in a second.

#pragma once

#include <cstdint>
#include <optional>

#include "problem/problem.h"

namespace placewright::testing {

inline constexpr std::size_t kSmallProblem = 6;  // ops at most

// The draft of this number; it may contradict itself (an op that no device runs).
ProblemDraft small_draft(Objective objective, std::uint64_t number);

// Its problem, or nothing where it contradicts itself.
std::optional<Problem> small_problem(Objective objective, std::uint64_t number);

// The least value of all plans, where looking at everything takes milliseconds.
struct Enumerated {
  bool known = false;
  std::optional<double> least = {};  // known and nothing: there is no plan
};
Enumerated enumerated(const Problem& problem);

}  // namespace placewright::testing
