#include "profiling/cut_widths.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

// An error of the trials that no measurement would make much better.
constexpr double kSmallError = 0.03;

bool is_safe(const CutCost& cost, const CutCost& narrowest, const CutCost& widest) {
  const double usual = std::max({kSmallError, narrowest.error(), widest.error()});
  return cost.doubt().empty() && cost.error() <= usual;
}

}  // namespace

GroupEntries interpolated(const GroupEntries& narrow, std::size_t narrow_cores,
                          const GroupEntries& wide, std::size_t wide_cores, std::size_t cores) {
  const auto steps = [&](std::size_t of) {
    return std::log2(static_cast<double>(of) / static_cast<double>(narrow_cores));
  };
  const double part = steps(cores) / steps(wide_cores);
  GroupEntries result{std::lerp(narrow.call, wide.call, part), {}};
  for (std::size_t group = 0; group < narrow.entries.size(); ++group) {
    result.entries.push_back(std::lerp(narrow.entries[group], wide.entries[group], part));
  }
  return result;
}

std::vector<CutCost> cuts_of_widths(std::span<const std::size_t> cores,
                                    const CutMeasurement& measurement) {
  std::vector<CutCost> costs(cores.size());
  if (cores.empty()) return costs;
  const std::size_t last = cores.size() - 1;
  costs.front() = measurement.measure(0);
  if (last > 0) costs[last] = measurement.measure(last);
  for (std::size_t i = 1; i < last; ++i) {
    costs[i] = measurement.attempt(i, interpolated(costs.front().groups, cores.front(),
                                                   costs[last].groups, cores[last], cores[i]));
    if (!is_safe(costs[i], costs.front(), costs[last])) costs[i] = measurement.measure(i);
  }
  return costs;
}

}  // namespace placewright
