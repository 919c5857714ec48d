// Runs the real program as a user does, and hands back what it printed.

#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace placewright::testing {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
  long peak_kibibytes = 0;  // the most memory that it had at a time

  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out); }
};

// A program that runs beside the test, for signals.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments, const std::string& input = "");
  // Another program, by its path.
  RunningProgram(std::string program, const std::vector<std::string>& arguments,
                 const std::string& input);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const;
  // Whether it has not ended yet.
  [[nodiscard]] bool runs() const;
  [[nodiscard]] pid_t process() const { return process_; }
  ProgramResult wait();

 private:
  pid_t process_ = -1;
  std::FILE* in_;
  std::FILE* out_;
  std::FILE* err_;
};

ProgramResult run(const std::vector<std::string>& arguments, const std::string& input = "");

// The same in a shell that redirects a stream first: "2>&-".
ProgramResult run_redirected(const std::string& redirection,
                             const std::vector<std::string>& arguments);

}  // namespace placewright::testing
