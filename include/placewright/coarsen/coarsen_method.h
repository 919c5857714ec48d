// How a problem is made smaller before it is planned (src/coarsen/coarsening.h).

#pragma once

#include "placewright/problem/spelling.h"

namespace placewright {

enum class CoarsenMethod { none, colocation, classes, chains, fusion };
template <>
inline constexpr auto kSpellings<CoarsenMethod> = std::to_array<Spelling<CoarsenMethod>>({
    {CoarsenMethod::none, "none", "plan the problem as it is"},
    {CoarsenMethod::colocation, "colocation", "ops that must share a device"},
    {CoarsenMethod::classes, "classes", "the same, and what contiguity forces together"},
    {CoarsenMethod::chains, "chains", "neighbours in a chain with similar speed-ups (Talos)"},
    {CoarsenMethod::fusion, "fusion",
     "what an inference backend fuses at run time (Moirai's GCOF)"},
});

struct CoarsenOptions {
  CoarsenMethod method = CoarsenMethod::none;
  // chains: a speed-up lies within (1 / ratio, ratio) times that of the group's first op ...
  double speedup_ratio = 2;
  // ... and an op's least time is below this, in milliseconds; a problem without a unit takes the
  // number as it is.
  double longest_packed = 10;
};

}  // namespace placewright
