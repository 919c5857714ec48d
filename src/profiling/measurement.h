// Timing on a machine that others use too: which runs were disturbed, and what the rest say.
//
// A run counts as disturbed when the device's probe (machine/disturbance.h) saw it lose more than a
// little time to others. Disturbed runs are left out. Where most of them are disturbed, or the
// others differ too much, the measurement is not valid, and says so.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/target_devices.h"
#include "machine/clock.h"
#include "machine/core_check.h"
#include "machine/targets.h"
#include "problem/measured.h"

namespace placewright {

// How long to measure, when to stop, and whom to tell.
struct MeasureOptions {
  std::size_t warm_up = 3;
  std::size_t repeat = 20;  // undisturbed runs wanted; at most three times as many are made
  double seconds = 30;      // for each series of runs; a series has at least kFewestRuns
  Clock::time_point deadline = Clock::time_point::max();  // then a series ends with what it has
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress = {};

  void tell(const std::string& what) const {
    if (progress) progress(what);
  }
  // Throws Stopped once somebody has asked for an end.
  void check() const;
  [[nodiscard]] bool late() const { return Clock::now() >= deadline; }
  // Milliseconds until the deadline; 0 behind it.
  [[nodiscard]] double left() const { return std::max(0.0, milliseconds(deadline - Clock::now())); }
};

inline constexpr std::size_t kFewestRuns = 5;

inline constexpr std::uint64_t kProfileSeed = 1;  // of inputs, and of cuts at random

class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("interrupted") {}
};

struct TimedRun {
  double milliseconds = 0;
  std::optional<double> lost;  // of these, to others; nullopt: the device cannot tell
  bool disturbed = false;
};

// Watches what the calling thread does between `begin` and `end`.
class RunWatch {
 public:
  // Clock reads and a page fault now and then are no disturbance: so much waiting is free.
  static constexpr double kFreeMilliseconds = 0.02;

  explicit RunWatch(const Target& target, double free = kFreeMilliseconds)
      : probe_(probe_of(target)), free_(free) {}

  void begin();
  TimedRun end();

 private:
  std::unique_ptr<DisturbanceProbe> probe_;
  double free_;
  Clock::time_point begin_;
};

// Whether a series of runs needs another one.
class Series {
 public:
  explicit Series(const MeasureOptions& options) : options_(options) {}

  [[nodiscard]] bool goes_on(const std::vector<TimedRun>& runs) const;

 private:
  const MeasureOptions& options_;
  Clock::time_point begin_ = Clock::now();
};

// The runs as they are, or, where too few are undisturbed, with the shortest quarter taken for
// undisturbed.
std::vector<TimedRun> with_some_kept(std::vector<TimedRun> runs);

// Takes all runs for disturbed where others had a core while they were made.
void judge(const CoreCheck& cores, std::vector<TimedRun>& runs);

// Where too few runs are undisturbed, all of them count, less what each lost (which leaves out the
// time of others, but not what they did to the caches).
Measured summary_of(const std::vector<TimedRun>& runs);

}  // namespace placewright
