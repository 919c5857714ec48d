// Whether times that were measured earlier still hold: each whole model once more on each kind, for
// about a second in all, as when it was profiled (profile.h).

#pragma once

#include <string>

#include "profiling/profile.h"

namespace placewright {

// Times that differ by more than this are measured again, relatively.
inline constexpr double kLargestDrift = 0.1;

struct Recheck {
  double drift = 0;        // the largest, relative to what was kept
  std::string what;        // that differs so much: "resnet50 on cpu:0"
  bool disturbed = false;  // other work took the devices: nothing can be said

  [[nodiscard]] bool holds() const { return disturbed || drift <= kLargestDrift; }
};

// `kept` has the models and devices of the request. Throws as profile_models does, and Stopped.
Recheck recheck(const ProblemDraft& kept, const ProfileRequest& request);

}  // namespace placewright
