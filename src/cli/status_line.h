// What the program is at, on stderr while it works. On a terminal it is one line, rewritten, and
// gone at the end. Elsewhere, in a log, it is a line of its own every ten seconds, so that nobody
// waits for a program that seems to hang.

#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace placewright::cli {

class StatusLine {
 public:
  explicit StatusLine(bool wanted);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // On a terminal.
  [[nodiscard]] bool shown() const { return shown_; }
  // As much of it as the terminal is wide.
  void show(const std::string& text);

 private:
  void log(const std::stop_token& stop);

  bool shown_;
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::string text_;     // the last one
  std::jthread logger_;  // where stderr is no terminal
};

}  // namespace placewright::cli
