// Timing on a machine that others use too: which runs were disturbed, and what the rest say.
//
// A run counts as disturbed when the thread was on a core that is not its own, when, on a single
// core, it had less processor time than the clock went on, or, on several cores (where waiting for
// the others is part of the work), when the system took the core away from it. Disturbed runs are
// left out. Where most of them are disturbed, or the others differ too much, the measurement is not
// valid, and says so.

#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/targets.h"
#include "machine/workers.h"

namespace placewright {

// How long to measure, when to stop, and whom to tell.
struct MeasureOptions {
  std::size_t warm_up = 3;
  std::size_t repeat =
      20;               // undisturbed runs that are wanted; at most three times as many are made
  double seconds = 30;  // for each series of runs; a series has at least kFewestRuns
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> progress = {};

  void tell(const std::string& what) const {
    if (progress) progress(what);
  }
  // Throws Stopped once somebody has asked for an end.
  void check() const;
};

inline constexpr std::size_t kFewestRuns = 5;

class Stopped : public std::runtime_error {
 public:
  Stopped() : std::runtime_error("interrupted") {}
};

struct TimedRun {
  double milliseconds = 0;
  double processor_milliseconds = 0;  // of the calling thread
  bool disturbed = false;
};

// Watches what the calling thread does between `begin` and `end`.
class RunWatch {
 public:
  // Clock reads and a page fault now and then are no disturbance: so much waiting is free.
  static constexpr double kFreeMilliseconds = 0.02;

  explicit RunWatch(Target target, double free = kFreeMilliseconds)
      : target_(std::move(target)), free_(free) {}

  void begin();
  TimedRun end();

 private:
  [[nodiscard]] bool on_own_core() const;

  Target target_;
  double free_;
  bool began_at_home_ = true;
  long switches_ = 0;
  double processor_ = 0;
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

// Of values in any order; 0 of none.
double quantile(std::vector<double> values, double fraction);
double median(std::vector<double> values);

struct RunSummary {
  double milliseconds = 0;  // the median
  double spread = 0;        // half the distance of the quartiles, relative to the median
  std::size_t kept = 0;
  std::size_t rejected = 0;

  // Why it should not be believed; empty: it may be.
  [[nodiscard]] std::string doubt() const;
};

// The runs as they are, or, where too few are undisturbed, with the shortest quarter taken for
// undisturbed.
std::vector<TimedRun> with_some_kept(std::vector<TimedRun> runs);

// Where too few runs are undisturbed, the processor time of all of them stands in on a single core
// (it leaves out the time of others, but not what they did to the caches).
RunSummary summary_of(const std::vector<TimedRun>& runs, const Target& target);

}  // namespace placewright
