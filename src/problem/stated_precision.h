// What the models of a problem compute in, as its origin states it: costs hold for that alone, so
// plans are run in it too. A problem whose origin says nothing of it is from a time when all was
// measured in f32.

#pragma once

#include <string_view>

#include "problem/draft.h"
#include "problem/precision.h"

namespace placewright {

// How the line of ProblemDraft::origin begins that says so; then comes the name of the precision.
inline constexpr std::string_view kPrecisionOrigin = "models compute in: ";

void state_precision(ProblemDraft& draft, Precision precision);
Precision stated_precision(const ProblemDraft& draft);

}  // namespace placewright
