#include "profiling/measurement.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

namespace placewright {
namespace {

// Waiting beyond what is free anyway, as a share of the run.
constexpr double kFreeShare = 0.02;

constexpr std::size_t kFewest = 3;
constexpr double kLargestSpread = 0.1;

long involuntary_switches() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

bool RunWatch::on_own_core() const {
  return target_.cores.empty() ||
         std::binary_search(target_.cores.begin(), target_.cores.end(), sched_getcpu());
}

void RunWatch::begin() {
  began_at_home_ = on_own_core();
  switches_ = involuntary_switches();
  processor_ = thread_time();
  begin_ = Clock::now();
}

TimedRun RunWatch::end() {
  TimedRun run;
  run.milliseconds = milliseconds(Clock::now() - begin_);
  run.processor_milliseconds = thread_time() - processor_;
  const double waited = run.milliseconds - run.processor_milliseconds;
  const bool robbed = target_.cores.size() == 1 ? waited > free_ + kFreeShare * run.milliseconds
                                                : involuntary_switches() != switches_;
  run.disturbed = robbed || !began_at_home_ || !on_own_core();
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
  return runs.size() < kFewestRuns || milliseconds(Clock::now() - begin_) < options_.seconds * 1000;
}

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

std::string RunSummary::doubt() const {
  if (kept < kFewest || kept < rejected) {
    return fmt::format("{} of {} runs were disturbed", rejected, kept + rejected);
  }
  if (spread > kLargestSpread) {
    return fmt::format("the undisturbed runs differ by {:.0f} %", 100 * spread);
  }
  return {};
}

std::vector<TimedRun> with_some_kept(std::vector<TimedRun> runs) {
  const auto kept = static_cast<std::size_t>(
      std::count_if(runs.begin(), runs.end(), [](const TimedRun& run) { return !run.disturbed; }));
  if (kept >= kFewest) return runs;
  std::vector<double> times;
  for (const TimedRun& run : runs) times.push_back(run.milliseconds);
  const double limit = quantile(times, 0.25);
  for (TimedRun& run : runs) run.disturbed = run.milliseconds > limit;
  return runs;
}

RunSummary summary_of(const std::vector<TimedRun>& runs, const Target& target) {
  std::vector<double> times;
  for (const TimedRun& run : runs) {
    if (!run.disturbed) times.push_back(run.milliseconds);
  }
  RunSummary summary;
  summary.kept = times.size();
  summary.rejected = runs.size() - times.size();
  if (times.size() < kFewest) {
    times.clear();
    for (const TimedRun& run : runs) {
      times.push_back(target.cores.size() == 1 ? run.processor_milliseconds : run.milliseconds);
    }
  }
  summary.milliseconds = median(times);
  if (summary.milliseconds > 0) {
    summary.spread = (quantile(times, 0.75) - quantile(times, 0.25)) / 2 / summary.milliseconds;
  }
  return summary;
}

}  // namespace placewright
