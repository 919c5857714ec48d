// One line on stderr that says what the program is doing, if stderr is a terminal.

#pragma once

#include <string>

namespace placewright::cli {

class StatusLine {
 public:
  explicit StatusLine(bool wanted);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);

 private:
  bool shown_;
};

}  // namespace placewright::cli
