// Costs corrected by what a run measured.
//
// A plan was predicted from ops measured inside the whole model; in a run the ops are in segments.
// For each kind of device:
//
//   measured time of a segment  ≈  sum of its op times  +  factor × overheads that its ops bear
//
// First the factor of the kind is fitted over its segments (least squares, not negative): on what
// the tensors state for cuts, which keep their proportions, or, for a kind for which no tensor
// states any, on 1 for each transfer. Then the op times of each segment are scaled so that the
// segment takes what it took. No factor on measured times or cuts is larger than kLargestFactor or
// smaller than its inverse: what is further off was disturbed.

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "problem/draft.h"
#include "problem/problem.h"
#include "running/segments.h"

namespace placewright {

inline constexpr double kLargestFactor = 2;

// By segment: the overheads that its ops bear for the tensors that it takes in from other devices
// and hands out to them.
std::vector<double> overheads_of(const Problem& problem, const std::vector<Segment>& segments);

// `measured` by segment in the problem's unit; nothing where there is no valid time. The draft is
// the problem's own, with other times and overheads and a sentence more in its origin.
ProblemDraft corrected(const Problem& problem, const std::vector<Segment>& segments,
                       const std::vector<std::optional<double>>& measured);

}  // namespace placewright
