#include "evaluate/timeline.h"

#include <algorithm>

namespace placewright {

std::size_t Timeline::first_ending_after(double time) const {
  const auto found = std::upper_bound(
      busy_.begin(), busy_.end(), time,
      [](double wanted, const Interval& interval) { return wanted < interval.end; });
  return static_cast<std::size_t>(found - busy_.begin());
}

double Timeline::earliest(double ready, double length) const {
  double start = ready;
  for (std::size_t i = first_ending_after(ready); i < busy_.size(); ++i) {
    if (start + length <= busy_[i].start) return start;
    start = busy_[i].end;
  }
  return start;
}

void Timeline::occupy(double start, double length) {
  const double end = start + length;
  const std::size_t next = first_ending_after(start);
  const bool joins_previous = next > 0 && busy_[next - 1].end == start;
  const bool joins_next = next < busy_.size() && busy_[next].start == end;
  const auto position = busy_.begin() + static_cast<std::ptrdiff_t>(next);
  if (joins_previous && joins_next) {
    busy_[next - 1].end = busy_[next].end;
    busy_.erase(position);
  } else if (joins_previous) {
    busy_[next - 1].end = end;
  } else if (joins_next) {
    busy_[next].start = start;
  } else {
    busy_.insert(position, Interval{start, end});
  }
}

void Timeline::occupy_for_now(double start, double length) {
  const auto position = busy_.begin() + static_cast<std::ptrdiff_t>(first_ending_after(start));
  busy_.insert(position, Interval{start, start + length});
}

void Timeline::release(double start) {
  busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(first_ending_after(start)));
}

}  // namespace placewright
