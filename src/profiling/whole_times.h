// What each whole model took on each kind with nothing beside it, as a line of the problem's
// origin: later the same can be measured in a second, which tells whether a profile still holds
// (recheck.h). The times of the ops do not tell: on cores that several devices share they are those
// beside busy ones.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "problem/draft.h"
#include "profiling/profile.h"

namespace placewright {

// How such a line begins; then come the time, and the names of the model and the kind.
inline constexpr std::string_view kWholeTimeOrigin = "alone: ";

std::string whole_time_line(const std::string& model, const KindProfile& kind);

// In milliseconds; nullopt: no line says so.
std::optional<double> whole_time(const ProblemDraft& draft, const std::string& model,
                                 const std::string& kind);

}  // namespace placewright
