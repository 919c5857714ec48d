#include "planning/suggestion.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace placewright {
namespace {

// Optimal string alignment distance.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  const std::size_t width = to.size() + 1;
  std::vector<std::size_t> distance((from.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return distance[i * width + j];
  };
  for (std::size_t i = 0; i <= from.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= to.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + (from[i - 1] == to[j - 1] ? 0 : 1);
      at(i, j) = std::min({replace, at(i - 1, j) + 1, at(i, j - 1) + 1});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(from.size(), to.size());
}

}  // namespace

std::string closest_name(std::string_view name, std::span<const std::string> candidates) {
  // Op names of a big model are many, and a long one costs a long time; nobody mistypes those.
  constexpr std::size_t kLongestName = 200;
  if (name.size() > kLongestName) return {};
  std::string closest;
  std::size_t least = name.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() >= name.size() + least || name.size() >= candidate.size() + least) {
      continue;
    }
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string closest = closest_name(name, candidates);
  return closest.empty() ? std::string{} : fmt::format(": did you mean '{}'?", closest);
}

}  // namespace placewright
