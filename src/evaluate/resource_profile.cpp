#include "evaluate/resource_profile.h"

#include "evaluate/galloping.h"

namespace placewright {

std::size_t LevelProfile::first_after(double time) const {
  return first_later<&Step::time>(steps_, time);
}

double LevelProfile::earliest(double ready, double length, double highest) const {
  double start = ready;
  std::size_t next = first_after(ready);
  if (next > 0 && steps_[next - 1].level > highest) {
    while (next < steps_.size() && steps_[next].level > highest) ++next;
    start = steps_[next].time;  // the last step has level 0, so there is one
  }
  for (; next < steps_.size() && steps_[next].time < start + length; ++next) {
    if (steps_[next].level <= highest) continue;
    while (steps_[next].level > highest) ++next;
    start = steps_[next].time;
  }
  return start;
}

std::size_t LevelProfile::step_at(double time) {
  const std::size_t next = first_after(time);
  if (next > 0 && steps_[next - 1].time == time) return next - 1;
  const double level = next > 0 ? steps_[next - 1].level : 0;
  steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(next), Step{time, level});
  return next;
}

void LevelProfile::raise(double start, double length, double amount) {
  if (!(start + length > start)) return;  // too short to be seen, or never
  const std::size_t first = step_at(start);
  const std::size_t last = step_at(start + length);
  for (std::size_t i = first; i < last; ++i) steps_[i].level += amount;
  join_equal_steps(first, last);
}

// Raising a stretch keeps the differences inside it, so only its two ends can have become equal to
// what lies before them.
void LevelProfile::join_equal_steps(std::size_t first, std::size_t last) {
  const auto joins = [this](std::size_t step) {
    return step > 0 && steps_[step].level == steps_[step - 1].level;
  };
  if (joins(last)) steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(last));
  if (joins(first)) steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(first));
}

double ResourceProfiles::earliest(std::span<const ResourceUse> uses, double share, double ready,
                                  double length) const {
  if (length == 0) return ready;
  double start = ready;
  for (double before = -1; start != before;) {
    before = start;
    for (const ResourceUse& use : uses) {
      const double capacity = problem_->resource(use.resource).capacity;
      const double highest = capacity * (1 + kCapacityTolerance) - share * use.amount;
      start = profiles_[use.resource].earliest(start, length, highest);
    }
  }
  return start;
}

void ResourceProfiles::hold(std::span<const ResourceUse> uses, double share, double start,
                            double length) {
  if (length == 0) return;
  for (const ResourceUse& use : uses) {
    profiles_[use.resource].raise(start, length, share * use.amount);
  }
}

}  // namespace placewright
