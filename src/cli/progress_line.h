// One line on stderr, rewritten while planners work: who is at it, best value, bound, gap, time and
// rate of work, as much as the terminal is wide. Nothing at all where stderr is not a terminal.

#pragma once

#include <chrono>
#include <mutex>

#include "planners/planner.h"

namespace placewright::cli {

class ProgressLine {
 public:
  ProgressLine(bool wanted, TimeUnit unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // What planners report to; empty when nothing is to be shown.
  [[nodiscard]] Control::Observer observer();

 private:
  void show(const Progress& progress);

  using Clock = std::chrono::steady_clock;
  bool shown_;
  TimeUnit unit_;
  std::mutex mutex_;
  double best_value_ = kInfinity;
  double best_bound_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = {};
};

}  // namespace placewright::cli
