// Where the costs of a problem come from, as far as its origin tells: plans made from estimates, or
// from measurements that other work disturbed, must not be taken for more than that.

#pragma once

#include <string>

#include "problem/draft.h"
#include "problem/spelling.h"

namespace placewright {

enum class CostSource { stated, measured, estimated, disturbed };
template <>
inline constexpr auto kSpellings<CostSource> = std::to_array<Spelling<CostSource>>({
    {CostSource::stated, "stated", "the problem file gives them"},
    {CostSource::measured, "measured", "on the devices of this machine"},
    {CostSource::estimated, "estimated", "from flops, bytes and data sheets"},
    {CostSource::disturbed, "disturbed", "measured while other work took the devices"},
});

// How a line of ProblemDraft::origin begins that says so.
inline constexpr std::string_view kMeasuredOrigin = "measured";
inline constexpr std::string_view kEstimatedOrigin = "op times: estimated";
inline constexpr std::string_view kDisturbedOrigin = "not valid: ";

// How far estimates are off, to both sides (docs/formats/cluster.md): a time, as a factor; and how
// one plan compares with another, as a fraction.
inline constexpr double kFactorOfEstimatedTimes = 2.5;
inline constexpr double kErrorOfEstimatedRatios = 0.25;

// The least trustworthy that the origin names.
CostSource cost_source(const ProblemDraft& draft);

// A sentence about costs that a reader must know of; empty for stated and measured ones.
std::string caution_of(CostSource source);

}  // namespace placewright
