// Ctrl-C: the first one asks planners to stop and hand over what they have, the second ends the
// program at once.

#pragma once

#include <atomic>

namespace placewright::cli {

// Catches SIGINT and SIGTERM while it lives.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  [[nodiscard]] const std::atomic<bool>* flag() const;
};

}  // namespace placewright::cli
