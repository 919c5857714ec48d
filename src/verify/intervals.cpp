#include "verify/intervals.h"

#include <algorithm>
#include <tuple>

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

// Starts and ends in order of time; ends come first, and earlier by the tolerance.
std::vector<Change> changes_of(const std::vector<Holding>& holdings, double tolerance) {
  std::vector<Change> changes;
  for (const Holding& holding : holdings) {
    const double end = holding.end - tolerance;
    if (end <= holding.start || holding.amount == 0) continue;
    changes.push_back({holding.start, holding.amount, holding.item});
    changes.push_back({end, -holding.amount, holding.item});
  }
  std::ranges::sort(changes, {}, [](const Change& change) {
    return std::make_tuple(change.time, change.amount, change.item);
  });
  return changes;
}

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
  Peak peak;
  double level = 0;
  for (const Change& change : changes_of(holdings, tolerance)) {
    level += change.amount;
    if (level > peak.level) peak = {level, change.time, change.item};
  }
  return peak;
}

std::vector<Excess> excesses(const std::vector<Holding>& holdings, double limit, double tolerance) {
  std::vector<Excess> found;
  std::vector<std::size_t> running;
  double level = 0;
  for (const Change& change : changes_of(holdings, tolerance)) {
    const bool was_above = level > limit;
    level += change.amount;
    if (change.amount < 0) {
      running.erase(std::find(running.begin(), running.end(), change.item));
      continue;
    }
    running.push_back(change.item);
    if (was_above || level <= limit) continue;
    found.push_back({change.time, level, running});
    std::rotate(found.back().items.begin(), found.back().items.end() - 1, found.back().items.end());
  }
  return found;
}

}  // namespace placewright::verifying
