// The largest time, size or weight that a problem can have.

#pragma once

namespace placewright {

// Sums and products of them stay far from overflow.
inline constexpr double kLargestNumber = 1e100;

}  // namespace placewright
