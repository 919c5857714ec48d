#include "planners/methods/time_grid.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

constexpr double kMostUnits = 1LL << 46;
constexpr int kMostDigits = 7;
constexpr double kUnitsPerActivity = 4e6;
constexpr double kNearlyWhole = 1e-6;

bool whole(std::span<const double> times, double scale) {
  return std::all_of(times.begin(), times.end(), [&](double time) {
    const double scaled = time * scale;
    return std::abs(scaled - std::round(scaled)) <= 1e-9 * std::max(1.0, scaled);
  });
}

}  // namespace

TimeGrid TimeGrid::for_times(std::span<const double> times, double reference, double largest,
                             std::size_t activities) {
  TimeGrid grid;
  double scale = 1;
  for (int digits = 0; digits <= kMostDigits; ++digits, scale *= 10) {
    if (largest * scale > kMostUnits / 1024) break;
    if (!whole(times, scale)) continue;
    grid.scale_ = scale;
    return grid;
  }
  grid.exact_ = false;
  if (largest <= 0) return grid;
  const double fine = reference > 0
                          ? kUnitsPerActivity * static_cast<double>(activities) / reference
                          : kMostUnits / largest;
  grid.scale_ = std::min(fine, kMostUnits / largest);
  return grid;
}

std::int64_t TimeGrid::units(double time) const {
  const double scaled = time * scale_;
  const double nearest = std::round(scaled);
  return static_cast<std::int64_t>(std::abs(scaled - nearest) <= kNearlyWhole ? nearest
                                                                              : std::floor(scaled));
}

}  // namespace placewright
