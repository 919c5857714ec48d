#include "problem/stated_precision.h"

#include <string>

namespace placewright {

void state_precision(ProblemDraft& draft, Precision precision) {
  draft.origin.push_back(std::string(kPrecisionOrigin) + std::string(name_of(precision)));
}

Precision stated_precision(const ProblemDraft& draft) {
  for (const std::string& line : draft.origin) {
    if (!line.starts_with(kPrecisionOrigin)) continue;
    const auto name = std::string_view(line).substr(kPrecisionOrigin.size());
    if (const auto precision = value_named<Precision>(name)) return *precision;
  }
  return Precision::f32;
}

}  // namespace placewright
