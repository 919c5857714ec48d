// What cuts cost on sets of cores of several sizes.
//
// To run every fused group by itself is most of what a profile takes, for each size again. So that
// is done for the smallest and the largest set; between them calls and entries are interpolated,
// linearly in the logarithm of the number of cores. Two trials on each set tell whether that is
// safe: where they are predicted worse than by what was measured for the ends (and by more than a
// little), or were disturbed, this size is measured as well.

#pragma once

#include <functional>
#include <span>
#include <vector>

#include "profiling/cut_cost.h"

namespace placewright {

// Of so many cores, between two numbers of cores.
GroupEntries interpolated(const GroupEntries& narrow, std::size_t narrow_cores,
                          const GroupEntries& wide, std::size_t wide_cores, std::size_t cores);

// How one size is measured, and tried; sizes are called by their places.
struct CutMeasurement {
  std::function<CutCost(std::size_t)> measure;
  std::function<CutCost(std::size_t, GroupEntries)> attempt;
};

// `cores`: ascending. Whose `apart` is not there was interpolated.
std::vector<CutCost> cuts_of_widths(std::span<const std::size_t> cores,
                                    const CutMeasurement& measurement);

}  // namespace placewright
