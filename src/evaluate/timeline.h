// When a device lane or a port is busy: disjoint intervals in order of time.

#pragma once

#include <cstddef>
#include <vector>

namespace placewright {

class Timeline {
 public:
  // The earliest start >= ready of a free stretch of that length. Gaps between intervals are used.
  // O(log n + intervals skipped).
  [[nodiscard]] double earliest(double ready, double length) const;

  // The same for a stretch that is free on two timelines at once. Where it would start after
  // `latest`, some time after `latest` is the answer: nobody asks for more.
  friend double earliest_in_both(const Timeline& a, const Timeline& b, double ready, double length,
                                 double latest);

  // The end of the last interval.
  [[nodiscard]] double end() const { return busy_.empty() ? 0 : busy_.back().end; }

  // Marks [start, start + length) as busy, which must be free. Touching intervals merge, so a
  // packed timeline stays short.
  void occupy(double start, double length);

  // The same, to be taken back by `release` in reverse order.
  void occupy_for_now(double start, double length);
  void release(double start);

 private:
  struct Interval {
    double start;
    double end;
  };
  [[nodiscard]] std::size_t first_ending_after(double time) const;
  // The same where none before `from` does; quick when it is near.
  [[nodiscard]] std::size_t first_ending_after(double time, std::size_t from) const;

  std::vector<Interval> busy_;
};

}  // namespace placewright
