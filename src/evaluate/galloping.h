// Where a time lies in a list that is sorted by time, sought from the end: schedules are asked
// about their end far more often than about their beginning. O(log distance).

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace placewright {

// The first item whose `Time` is after `time`.
template <auto Time, class Item>
std::size_t first_later(const std::vector<Item>& items, double time) {
  std::size_t after = items.size();  // all items from here on are later
  std::size_t stride = 1;
  while (after >= stride && items[after - stride].*Time > time) {
    after -= stride;
    stride *= 2;
  }
  const auto begin =
      items.begin() + static_cast<std::ptrdiff_t>(after < stride ? 0 : after - stride);
  const auto found =
      std::upper_bound(begin, items.begin() + static_cast<std::ptrdiff_t>(after), time,
                       [](double wanted, const Item& item) { return wanted < item.*Time; });
  return static_cast<std::size_t>(found - items.begin());
}

}  // namespace placewright
