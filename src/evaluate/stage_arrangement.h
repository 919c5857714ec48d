// When in its period each stage of a pipeline holds the resources that it shares with others
// (docs/semantics.md, "throughput", Resources).
//
// Stage i holds its demands during [offset_i, offset_i + load_i). The least period T is sought such
// that no resource is ever asked for more than its capacity, moments being taken modulo T; in a
// pass of a phased pipeline T ends with the last stage instead.
//
//   quick   each stage in turn as early as it fits, in the best of four orders. With the widest first,
//           nested and disjoint sets of whole resources reach the largest sum of loads on a resource,
//           which is the least period there is. O(stages^2 x resources)
//   every   for few stages, where the quick one does not reach that sum: the least T there is.
//
// Why the second is exact. With T given, fix one stage at 0 and move all that do not begin at the
// end of a stage that is fixed (or with the first one) earlier, together, until one of them does,
// and fix that one too: nothing begins to overlap on the way. So it is enough to look at
// arrangements in which every stage begins at 0 or where another one ends: trees, which are
// enumerated. And where T cannot shrink, stages follow each other without a gap in a ring that goes
// round some k times (if none did, all of them could be moved a little for a smaller T): T is a sum
// of loads of some stages, divided by a whole number. A larger T never forbids what a smaller one
// allows, so those sums are searched by halves. Exponential: some 10^5 trees for 7 stages at worst,
// far fewer where most of them exclude each other.

#pragma once

#include <optional>
#include <span>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Arrangement {
  std::vector<double> offsets;  // by stage
  double period = kInfinity;    // infinite: replicas of a stage cannot work side by side
};

enum class PeriodEnd {
  wraps,      // stages go on into the next period
  last_stage  // the period ends when all stages have ended
};

// Of so many stages every arrangement is looked at.
inline constexpr std::size_t kMostArrangedStages = 7;

class StageArrangements {
 public:
  // The problem and the stages' records must outlive it.
  StageArrangements(const Problem& problem, std::span<const Stage> stages);

  // No arrangement has a shorter period: the largest load, the largest sum of loads x demands on a
  // resource, by its capacity.
  [[nodiscard]] double bound(std::span<const double> loads) const;

  // The stages in their order, each as early as it fits beside those before it, or where it is
  // stated to begin.
  [[nodiscard]] Arrangement listed(std::span<const double> loads,
                                   std::span<const std::optional<double>> stated) const;

  // The quick one; where a period below the given one is possible and the stages are few, the best
  // of all.
  [[nodiscard]] Arrangement best(std::span<const double> loads, PeriodEnd end, double below) const;

 private:
  [[nodiscard]] Arrangement quick(std::span<const double> loads) const;
  [[nodiscard]] Arrangement in_order(std::span<const double> loads,
                                     std::span<const std::size_t> order,
                                     std::span<const std::optional<double>> stated = {}) const;

  const Problem& problem_;
  std::vector<std::vector<ResourceUse>> demands_;  // by stage; replicas added up
  std::vector<double> width_;                      // of all capacities, by stage
  bool possible_ = true;                           // each stage alone is within the capacities
};

}  // namespace placewright
