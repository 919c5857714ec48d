#include "cli/status_line.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/text.h"

namespace placewright::cli {

StatusLine::StatusLine(bool wanted) : shown_(wanted && is_terminal(stderr)) {
  if (wanted && !shown_) logger_ = std::jthread([this](const std::stop_token& stop) { log(stop); });
}

StatusLine::~StatusLine() {
  if (shown_) tell("\r\033[K");
}

void StatusLine::log(const std::stop_token& stop) {
  constexpr std::chrono::seconds kBetweenLines{10};
  std::unique_lock lock(mutex_);
  for (int line = 1;; ++line) {
    (void)ended_.wait_for(lock, stop, kBetweenLines, [] { return false; });
    if (stop.stop_requested()) return;
    if (text_.empty()) continue;
    tell(fmt::format("placewright: {} s: {}\n", line * kBetweenLines.count(), text_));
  }
}

void StatusLine::show(const std::string& text) {
  if (!shown_) {
    const std::lock_guard lock(mutex_);
    text_ = printable(text);
    return;
  }
  std::string line = printable(text);
  // A line that wraps could not be taken back.
  line.resize(std::min(line.size(), static_cast<std::size_t>(terminal_width(stderr, 80) - 1)));
  tell("\r\033[K" + line);
}

}  // namespace placewright::cli
