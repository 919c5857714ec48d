#include "problem/cost_source.h"

#include <algorithm>

namespace placewright {

CostSource cost_source(const ProblemDraft& draft) {
  const auto told = [&](std::string_view begin) {
    return std::any_of(draft.origin.begin(), draft.origin.end(),
                       [&](const std::string& line) { return line.starts_with(begin); });
  };
  if (told(kDisturbedOrigin)) return CostSource::disturbed;
  if (told(kEstimatedOrigin)) return CostSource::estimated;
  return told(kMeasuredOrigin) ? CostSource::measured : CostSource::stated;
}

std::string caution_of(CostSource source) {
  switch (source) {
    case CostSource::estimated:
      return "the costs are estimated, not measured";
    case CostSource::disturbed:
      return "other programs used the devices while the costs were measured: profile again on an "
             "idle machine";
    case CostSource::stated:
    case CostSource::measured:
      break;
  }
  return {};
}

}  // namespace placewright
