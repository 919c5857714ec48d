// Whether the cores of a set are this process's to use: looked at before and after a series of
// runs.
//
// A probe of single runs (disturbance.h) does not see everything. A thread that helps an inference
// and has lost its core altogether keeps nobody waiting: the others do its work, each run takes
// twice as long, and the system counts its wait only when it runs again. So a series is also judged
// as a whole, by three witnesses:
//
//   shares   Before and after it a thread on each core, all at once, computes for kProbe. A core that gives
//            it less than kLeastShare of the time belongs to somebody else too.
//   work     What these threads get done, beside the most that a core of this process ever did in that time:
//            a processor that another machine shares seems to be there all the time, but works less.
//   waits    How long all threads of the process were ready to run and had no core, from the first look to the
//            last one, as a share of the time of the cores.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "machine/targets.h"

namespace placewright {

inline constexpr double kProbe = 16;  // milliseconds

// What the thread on one core got.
struct CoreShare {
  int core = 0;
  double elapsed = 0;    // milliseconds
  double processor = 0;  // of these, on the core
  double work = 0;       // steps in a millisecond of `elapsed`

  [[nodiscard]] double share() const { return elapsed > 0 ? processor / elapsed : 1; }
};

// Blocks for kProbe, longer where a core is not to be had. Cores that this process may not use are
// left out.
std::vector<CoreShare> probe_cores(std::span<const int> cores);

// What a series saw of its cores.
struct CoreEvidence {
  std::vector<CoreShare> before;
  std::vector<CoreShare> after;
  double most_work = 0;  // that any core did in a millisecond, ever
  double waited = 0;     // milliseconds, all threads together
  double elapsed = 0;    // milliseconds, of the series
};

inline constexpr double kLeastShare = 0.8;  // of the time
inline constexpr double kLeastWork =
    0.6;  // of `most_work`: a processor's speed changes with its load
inline constexpr double kLargestWait = 0.1;  // of the time of all cores of the set

// Why others had one of the cores, in a few words; empty: nobody did.
std::string doubt_of(const CoreEvidence& evidence);

// Looks when it is made, and when it is asked. Nothing is seen of devices that are no sets of
// cores.
class CoreCheck {
 public:
  explicit CoreCheck(std::vector<int> cores);
  // The cores of all of them.
  explicit CoreCheck(std::span<const Target> targets);
  ~CoreCheck();
  CoreCheck(CoreCheck&&) noexcept;
  CoreCheck& operator=(CoreCheck&&) = delete;

  // Since it was made.
  [[nodiscard]] CoreEvidence evidence() const;
  [[nodiscard]] bool disturbed() const { return !doubt_of(evidence()).empty(); }

 private:
  struct State;
  std::unique_ptr<State> state_;  // nullptr: there are no cores
};

}  // namespace placewright
