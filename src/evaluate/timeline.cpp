#include "evaluate/timeline.h"

#include <algorithm>

#include "evaluate/galloping.h"

namespace placewright {

std::size_t Timeline::first_ending_after(double time) const {
  return first_later<&Interval::end>(busy_, time);
}

std::size_t Timeline::first_ending_after(double time, std::size_t from) const {
  std::size_t reach = from;  // all intervals before here end by `time`
  std::size_t step = 1;
  while (reach + step <= busy_.size() && busy_[reach + step - 1].end <= time) {
    reach += step;
    step *= 2;
  }
  const auto begin = busy_.begin() + static_cast<std::ptrdiff_t>(reach);
  const auto end =
      busy_.begin() + static_cast<std::ptrdiff_t>(std::min(reach + step, busy_.size()));
  const auto found = std::upper_bound(
      begin, end, time,
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

double earliest_in_both(const Timeline& a, const Timeline& b, double ready, double length,
                        double latest) {
  const auto& first = a.busy_;
  const auto& second = b.busy_;
  std::size_t i = a.first_ending_after(ready);
  std::size_t j = 0;
  double start = ready;
  for (bool begun = false;; begun = true) {
    while (i < first.size() && start + length > first[i].start) {
      start = first[i++].end;
      if (start > latest) return start;
    }
    const double free_on_first = start;
    j = begun ? b.first_ending_after(start, j) : b.first_ending_after(start);
    while (j < second.size() && start + length > second[j].start) {
      start = second[j++].end;
      if (start > latest) return start;
    }
    if (start == free_on_first) return start;
    i = a.first_ending_after(start, i);
  }
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
