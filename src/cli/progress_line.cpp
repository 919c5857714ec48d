#include "cli/progress_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/text.h"

namespace placewright::cli {

ProgressLine::ProgressLine(bool wanted, TimeUnit unit)
    : shown_(wanted && is_terminal(stderr)), unit_(unit) {}

ProgressLine::~ProgressLine() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

Control::Observer ProgressLine::observer() {
  if (!shown_) return {};
  return [this](const Progress& progress) { show(progress); };
}

void ProgressLine::show(const Progress& progress) {
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const std::lock_guard lock(mutex_);
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
  // A line that wraps could not be taken back.
  line.resize(std::min(line.size(), static_cast<std::size_t>(terminal_width(stderr, 80) - 1)));
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace placewright::cli
