#include "problem/measured.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace placewright {
namespace {

double quantile_of_sorted(const std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

}  // namespace

bool Measured::disturbed() const {
  return !undisturbed() || kept < std::min(kFewestKept, kept + rejected);
}

bool Measured::valid() const {
  return !disturbed() && spread() <= kLargestSpread;
}

std::string doubt_of(const Measured& runs) {
  if (runs.valid()) return {};
  if (runs.disturbed()) {
    return fmt::format("{} of {} runs were disturbed", runs.rejected, runs.kept + runs.rejected);
  }
  return fmt::format("the undisturbed runs differ by {:.0f} %", 100 * runs.spread());
}

double quantile(std::vector<double> values, double fraction) {
  std::sort(values.begin(), values.end());
  return quantile_of_sorted(values, fraction);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

Measured measured(std::vector<double> kept, std::size_t rejected) {
  std::sort(kept.begin(), kept.end());
  return {.median = quantile_of_sorted(kept, 0.5),
          .low = quantile_of_sorted(kept, 0.1),
          .high = quantile_of_sorted(kept, 0.9),
          .kept = kept.size(),
          .rejected = rejected};
}

Measured measured(std::vector<double> kept, const std::vector<double>& rejected) {
  const std::size_t count = kept.size();
  if (count < rejected.size()) kept.insert(kept.end(), rejected.begin(), rejected.end());
  Measured result = measured(std::move(kept), rejected.size());
  result.kept = count;
  return result;
}

}  // namespace placewright
