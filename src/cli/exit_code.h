// What the program's exit code means (the same for every verb).

#pragma once

#include <stdexcept>

namespace placewright::cli {

enum class ExitCode {
  success = 0,    // a valid plan or a clean answer, also after a time limit or Ctrl-C
  no = 1,         // the answer is no: infeasible, unknown, check failed
  usage = 2,      // the command line is wrong
  bad_input = 3,  // a file cannot be read, understood or written
  fault = 4,      // an internal error
};

// The command line asks for something that makes no sense; the message is one sentence.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Ctrl-C before there was anything to show: the answer is no, and nothing has failed.
class InterruptedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace placewright::cli
