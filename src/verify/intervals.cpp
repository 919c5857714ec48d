#include "verify/intervals.h"

#include <algorithm>

namespace placewright::verifying {
namespace {

bool ends_later(const Interval& left, const Interval& right) {
  return left.end > right.end;
}

bool starts_earlier(const Interval& left, const Interval& right) {
  return left.start != right.start ? left.start < right.start : left.end < right.end;
}

struct Change {
  double time = 0;
  double amount = 0;
  std::size_t item = 0;
};

}  // namespace

std::vector<Crowd> crowds(std::vector<Interval> intervals, std::size_t capacity, double tolerance) {
  std::sort(intervals.begin(), intervals.end(), starts_earlier);
  std::vector<Crowd> found;
  std::vector<Interval> running;  // a heap, the first to end in front
  for (const Interval& next : intervals) {
    while (!running.empty() && running.front().end <= next.start + tolerance) {
      std::pop_heap(running.begin(), running.end(), ends_later);
      running.pop_back();
    }
    if (running.size() >= capacity) {
      // An item shorter than the tolerance may come a rounding error after the start of another
      // that it precedes; the two only touch.
      Crowd crowd{next.item, {}};
      for (const Interval& other : running) {
        if (next.end > other.start + tolerance) crowd.running.push_back(other.item);
        if (crowd.running.size() == capacity) break;
      }
      if (crowd.running.size() == capacity) found.push_back(std::move(crowd));
    }
    running.push_back(next);
    std::push_heap(running.begin(), running.end(), ends_later);
  }
  return found;
}

Peak highest_level(const std::vector<Holding>& holdings, double tolerance) {
  std::vector<Change> changes;
  for (const Holding& holding : holdings) {
    const double end = holding.end - tolerance;
    if (end <= holding.start || holding.amount == 0) continue;
    changes.push_back({holding.start, holding.amount, holding.item});
    changes.push_back({end, -holding.amount, holding.item});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& left, const Change& right) {
    return left.time != right.time ? left.time < right.time : left.amount < right.amount;
  });
  Peak peak;
  double level = 0;
  for (const Change& change : changes) {
    level += change.amount;
    if (level > peak.level) peak = {level, change.time, change.item};
  }
  return peak;
}

}  // namespace placewright::verifying
