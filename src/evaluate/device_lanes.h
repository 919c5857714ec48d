// The lanes of one device: when each is busy, and where an op fits first.
//
// A list scheduler asks every device about every op, and on a device that is full it would walk
// over the same busy intervals again and again. So for each class of lengths (two to a power of
// two) the last stretch of time is kept in which nothing of that class can start. It stays true as
// the lanes fill up, since nothing is ever taken out of them; a question inside it is answered from
// its end on, and `known_earliest` answers without a search at all.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "evaluate/timeline.h"

namespace placewright {

class DeviceLanes {
 public:
  explicit DeviceLanes(std::size_t lanes) : lanes_(lanes) {}

  // The earliest start >= ready of a stretch of that length (> 0) that is free on one lane.
  [[nodiscard]] double earliest(double ready, double length);
  // A time between `ready` and `earliest(ready, length)`, from what is known; O(1).
  [[nodiscard]] double known_earliest(double ready, double length) const;

  // When a lane has nothing more to do.
  [[nodiscard]] double end() const;

  // On a lane that is free then; in a gap, or behind all that is on it.
  void occupy(double start, double length);
  void append(double start, double length);

 private:
  // Lengths whose leading bits are the same: exponent and one bit more.
  using LengthClass = std::uint64_t;
  static constexpr std::size_t kClasses = 16;  // kept at a time

  struct FullStretch {  // [from, to): nothing of that class starts there
    LengthClass lengths = 0;
    double from = 0;
    double to = 0;
  };

  [[nodiscard]] double search(double ready, double length) const;

  std::vector<Timeline> lanes_;
  std::array<FullStretch, kClasses> full_{};
};

}  // namespace placewright
