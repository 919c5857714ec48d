#include "planners/methods/cp_sat_limits.h"

#include <algorithm>

namespace placewright::throughput {
namespace {

constexpr double kStepSeconds = 0.001;  // of deterministic time, for one step of a work limit
constexpr std::uint64_t kNoStepLimit = 1'000'000'000;

}  // namespace

solvers::CpLimits cp_sat_limits(const Control& control) {
  const Budget& budget = control.budget();
  solvers::CpLimits limits;
  limits.time_seconds = std::max(0.01, control.remaining());
  limits.workers = budget.threads;
  limits.seed = static_cast<int>(budget.seed % 1'000'000);
  limits.relative_gap = kOptimalGap / 10;
  limits.stop = control.interruption();
  if (budget.steps < kNoStepLimit) {
    limits.deterministic_time = static_cast<double>(budget.steps) * kStepSeconds;
  }
  return limits;
}

}  // namespace placewright::throughput
