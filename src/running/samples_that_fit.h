// How many samples a stretch of time has room for.

#pragma once

#include <cstddef>
#include <functional>

namespace placewright {

// Runs `first` samples, then four times as many and so on, until those have taken a fiftieth of the
// time: the first few are slow, since caches and clocks are cold, and tell little of the others.
// `run` takes a number of samples and answers how many milliseconds they took; once `stopped`,
// there are no more trials.
inline std::size_t samples_that_fit(double seconds, std::size_t first,
                                    const std::function<double(std::size_t)>& run,
                                    const std::function<bool()>& stopped) {
  constexpr std::size_t kGrowth = 4;
  constexpr double kTrialShare = 0.02;
  constexpr double kShortestSample = 1e-3;  // milliseconds
  const double available = seconds * 1000;
  for (std::size_t samples = first;; samples *= kGrowth) {
    const double taken = run(samples);
    const double each = taken / static_cast<double>(samples);
    if (taken >= kTrialShare * available || each <= kShortestSample || stopped()) {
      return static_cast<std::size_t>(available /
                                      (each > kShortestSample ? each : kShortestSample));
    }
  }
}

}  // namespace placewright
