// Half-open intervals of time on one device, port or resource: how many at once, and how much.

#pragma once

#include <cstddef>
#include <vector>

namespace placewright::verifying {

// `item` is the caller's number for whatever takes the time.
struct Interval {
  double start = 0;
  double end = 0;
  std::size_t item = 0;
};

// An item that starts although `running`, as many as there is room for, still run.
struct Crowd {
  std::size_t late = 0;
  std::vector<std::size_t> running;
};

// Overlaps of up to `tolerance` at either end do not count. O(n log n), and O(capacity) for each
// crowd.
std::vector<Crowd> crowds(std::vector<Interval> intervals, std::size_t capacity, double tolerance);

struct Holding {
  double start = 0;
  double end = 0;
  double amount = 0;
  std::size_t item = 0;
};

// The highest sum of amounts held at once, when it is first reached, and the item that makes it.
struct Peak {
  double level = 0;
  double time = 0;
  std::size_t item = 0;
};

Peak highest_level(const std::vector<Holding>& holdings, double tolerance);

// A moment from which on more is held than there is: the item that starts then, in front, and those
// that still run.
struct Excess {
  double time = 0;
  double level = 0;
  std::vector<std::size_t> items;
};

// One for each stretch of time in which the level is above `limit`.
std::vector<Excess> excesses(const std::vector<Holding>& holdings, double limit, double tolerance);

}  // namespace placewright::verifying
