// What running ops take of the shared resources, over time (docs/semantics.md, "Resource").
//
// Each resource has a profile: its level from one moment to the next. An op fits where its demand
// stays within the capacity of every resource of its device for as long as it runs; gaps before
// what was entered earlier count. O(log steps + steps passed over) to ask and to enter, and steps
// of equal level are one, so a resource that is never idle has few.
//
//   level
//     2 |        +-----+
//     1 |  +-----+     +--+
//     0 +--+              +------   time
//          first step       last step: level 0 again

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "problem/problem.h"

namespace placewright {

// Demands that sum to this much above the capacity, relative to it, still fit.
inline constexpr double kCapacityTolerance = 1e-9;

// The level of one resource.
class LevelProfile {
 public:
  // The earliest start >= ready from which the level is at most `highest` for that long.
  [[nodiscard]] double earliest(double ready, double length, double highest) const;

  // Raises the level in [start, start + length).
  void raise(double start, double length, double amount);

  void clear() { steps_.clear(); }

 private:
  struct Step {
    double time;
    double level;  // from here to the next step; of the last one 0
  };
  // The first step after `time`; schedules grow at the end, so the search starts there.
  [[nodiscard]] std::size_t first_after(double time) const;
  // The step at exactly `time`, made where there is none.
  std::size_t step_at(double time);
  void join_equal_steps(std::size_t first, std::size_t last);

  std::vector<Step> steps_;
};

// The profiles of all resources of a problem. Costs nothing where the problem has none.
class ResourceProfiles {
 public:
  explicit ResourceProfiles(const Problem& problem)
      : problem_(&problem), profiles_(problem.resource_count()) {}

  [[nodiscard]] bool any() const { return profiles_.size() > 0; }

  // The earliest start >= ready at which that share of the amounts is free for that long. Each
  // amount must be within its capacity.
  [[nodiscard]] double earliest(std::span<const ResourceUse> uses, double share, double ready,
                                double length) const;
  void hold(std::span<const ResourceUse> uses, double share, double start, double length);

  // The same for an op on a device.
  [[nodiscard]] double earliest(OpId op, DeviceId device, double ready, double length) const {
    return earliest(problem_->uses(device), problem_->share(op, device), ready, length);
  }
  void hold(OpId op, DeviceId device, double start, double length) {
    hold(problem_->uses(device), problem_->share(op, device), start, length);
  }

  void clear() {
    for (LevelProfile& profile : profiles_) profile.clear();
  }

 private:
  const Problem* problem_;
  Table<ResourceId, LevelProfile> profiles_;
};

}  // namespace placewright
