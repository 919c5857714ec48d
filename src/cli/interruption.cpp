#include "cli/interruption.h"

namespace placewright::cli {
namespace {

// A signal handler can reach nothing but globals, and atomics without locks.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int signal) {
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

Interruption::Interruption() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // Reads and writes go on after the signal.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

Interruption::~Interruption() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

const std::atomic<bool>* Interruption::flag() const {
  return &interrupted;
}

}  // namespace placewright::cli
