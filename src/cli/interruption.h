// Ctrl-C: the first one asks planners to stop and hand over what they have, the second ends the
// program at once.

#pragma once

#include <atomic>
#include <csignal>

namespace placewright::cli {

// Catches SIGINT and SIGTERM while it lives; afterwards they are handled as they were before.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  [[nodiscard]] const std::atomic<bool>* flag() const;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

}  // namespace placewright::cli
