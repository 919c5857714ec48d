#include "cli/progress_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text.h"

namespace placewright::cli {

Control::Observer ProgressLine::observer() {
  if (!line_.shown()) return {};
  return [this](const Progress& progress) { show(progress); };
}

void ProgressLine::show(const Progress& progress) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const bool better = progress.value < best_value_;
  best_value_ = std::min(best_value_, progress.value);
  best_bound_ = std::max(best_bound_, progress.lower_bound);
  const auto now = Clock::now();
  if (!better && now - last_ < kInterval) return;
  last_ = now;
  std::string line = fmt::format(
      "{}: value {}, bound {}, gap {}, {}", progress.planner, value_text(best_value_, unit_),
      value_text(best_bound_, unit_), percent_text(gap(best_value_, best_bound_)),
      duration_text(std::chrono::duration<double>(now - begin_).count()));
  const std::string rate = rate_text(progress.steps, progress.seconds);
  if (!rate.empty()) line += ", " + rate;
  line_.show(line);
}

}  // namespace placewright::cli
