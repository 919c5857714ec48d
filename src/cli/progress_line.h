// The status line while planners work: which one, best value, bound, gap, time and rate of work.

#pragma once

#include <chrono>

#include "cli/status_line.h"
#include "planners/planner.h"

namespace placewright::cli {

class ProgressLine {
 public:
  ProgressLine(bool wanted, TimeUnit unit) : line_(wanted), unit_(unit) {}

  // What planners report to; empty when nothing is to be shown.
  [[nodiscard]] Control::Observer observer();

 private:
  void show(const Progress& progress);

  using Clock = std::chrono::steady_clock;
  StatusLine line_;
  TimeUnit unit_;
  double best_value_ = kInfinity;
  double best_bound_ = 0;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = {};
};

}  // namespace placewright::cli
