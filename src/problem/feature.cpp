#include "problem/feature.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace placewright {

std::string text_of(Features features) {
  std::vector<std::string_view> names;
  for (const auto& [feature, name, meaning] : kSpellings<Feature>) {
    if (features.has(feature)) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, " or "));
}

}  // namespace placewright
