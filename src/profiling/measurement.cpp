#include "profiling/measurement.h"

#include <algorithm>

namespace placewright {
namespace {

// Waiting beyond what is free anyway, as a share of the run.
constexpr double kFreeShare = 0.02;

}  // namespace

void RunWatch::begin() {
  if (probe_) probe_->begin();
  begin_ = Clock::now();
}

TimedRun RunWatch::end() {
  TimedRun run{.milliseconds = milliseconds(Clock::now() - begin_), .lost = {}};
  if (probe_) {
    run.lost = probe_->lost();
    run.disturbed = *run.lost > free_ + kFreeShare * run.milliseconds;
  }
  return run;
}

void MeasureOptions::check() const {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Stopped();
}

bool Series::goes_on(const std::vector<TimedRun>& runs) const {
  options_.check();
  const auto kept = static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const TimedRun& run) { return !run.disturbed; }));
  if (kept >= options_.repeat || runs.size() >= 3 * options_.repeat) return false;
  if (options_.late()) return runs.empty();
  return runs.size() < kFewestRuns || milliseconds(Clock::now() - begin_) < options_.seconds * 1000;
}

std::vector<TimedRun> with_some_kept(std::vector<TimedRun> runs) {
  const auto kept = static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const TimedRun& run) { return !run.disturbed; }));
  if (kept >= kFewestKept) return runs;
  std::vector<double> times;
  for (const TimedRun& run : runs) times.push_back(run.milliseconds);
  const double limit = quantile(times, 0.25);
  for (TimedRun& run : runs) run.disturbed = run.milliseconds > limit;
  return runs;
}

void judge(const CoreCheck& cores, std::vector<TimedRun>& runs) {
  if (!cores.disturbed()) return;
  for (TimedRun& run : runs) run.disturbed = true;
}

Measured summary_of(const std::vector<TimedRun>& runs) {
  std::vector<double> times;
  for (const TimedRun& run : runs) {
    if (!run.disturbed) times.push_back(run.milliseconds);
  }
  const std::size_t kept = times.size();
  if (kept < kFewestKept) {
    times.clear();
    for (const TimedRun& run : runs) {
      times.push_back(std::max(0.0, run.milliseconds - run.lost.value_or(0)));
    }
  }
  Measured summary = measured(std::move(times), runs.size() - kept);
  summary.kept = kept;
  summary.watched = std::all_of(runs.begin(), runs.end(),
                                [](const TimedRun& run) { return run.lost.has_value(); });
  return summary;
}

}  // namespace placewright
