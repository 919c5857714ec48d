// Another program, run to its end.

#pragma once

#include <string>
#include <vector>

namespace placewright {

struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string errors;
};

// `words`: the program, looked up in PATH if it has no slash, and its arguments. It reads no input.
// Throws std::system_error if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& words);

// Becomes that program and returns only by std::system_error.
[[noreturn]] void become_process(const std::vector<std::string>& words);

}  // namespace placewright
