// The clock of every measurement.

#pragma once

#include <chrono>

namespace placewright {

using Clock = std::chrono::steady_clock;

inline double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace placewright
