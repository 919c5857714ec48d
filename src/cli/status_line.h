// One line on stderr, rewritten while the program works; it is gone at the end. Nothing is written
// if stderr is not a terminal.

#pragma once

#include <string>

namespace placewright::cli {

class StatusLine {
 public:
  explicit StatusLine(bool wanted);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  [[nodiscard]] bool shown() const { return shown_; }
  // As much of it as the terminal is wide.
  void show(const std::string& text);

 private:
  bool shown_;
};

}  // namespace placewright::cli
