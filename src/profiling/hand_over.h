// What it costs that a tensor made on one device is read on another.
//
//   one memory    Two bound threads: one writes the tensor and sets a flag, the other waits for the
//                 flag and reads it. The cost is the time from the flag to the end of reading,
//                 beyond what reading takes on the core that wrote.
//   two memories  The copy between them, as a run makes it.
//
// Measured over sizes from 4 KiB to 4 MiB and fitted as latency + bytes / bandwidth by least
// squares of the relative errors.

#pragma once

#include <string>
#include <vector>

#include "machine/targets.h"
#include "profiling/measurement.h"

namespace placewright {

struct HandOverPoint {
  double bytes = 0;
  double milliseconds = 0;
};

struct HandOver {
  double latency = 0;    // ms
  double bandwidth = 0;  // bytes per ms; infinite where size makes no difference
  double error = 0;      // median relative distance of the points from the fit
  std::vector<HandOverPoint> points;
  std::size_t kept = 0;
  std::size_t rejected = 0;
  bool watched = true;  // false: a device cannot tell whether others used it

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// Latency and bandwidth of the points, neither of them negative.
HandOver fitted(std::vector<HandOverPoint> points);

HandOver measure_hand_over(const Target& from, const Target& to, const MeasureOptions& options);

}  // namespace placewright
