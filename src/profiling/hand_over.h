// What it costs that a tensor made on one device is read on another.
//
//   one memory    Two bound threads: one writes the tensor and sets a flag, the other waits for the
//                 flag and reads it. The cost is the time from the flag to the end of reading,
//                 beyond what reading takes on the core that wrote.
//   two memories  The copy between them, as a run makes it.
//
// Measured over sizes from 4 KiB to 4 MiB and fitted as latency + bytes / bandwidth
// (robust_line.h).

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

// How long it takes from the end of a segment until a thread runs that slept meanwhile, since the
// segment had its cores: sets of cores that overlap take turns so (machine/workers.h). `all` has
// the cores of `woken` and more.
Measured measure_wake_up(const Target& all, const Target& woken, const MeasureOptions& options);

}  // namespace placewright
