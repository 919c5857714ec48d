#include "cli/status_line.h"

#include <algorithm>

#include "cli/terminal.h"
#include "cli/text.h"

namespace placewright::cli {

StatusLine::StatusLine(bool wanted) : shown_(wanted && is_terminal(stderr)) {}

StatusLine::~StatusLine() {
  if (shown_) tell("\r\033[K");
}

void StatusLine::show(const std::string& text) {
  if (!shown_) return;
  std::string line = printable(text);
  // A line that wraps could not be taken back.
  line.resize(std::min(line.size(), static_cast<std::size_t>(terminal_width(stderr, 80) - 1)));
  tell("\r\033[K" + line);
}

}  // namespace placewright::cli
