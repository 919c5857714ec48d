#include "cli/interruption.h"

#include <csignal>

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

void handle_with(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // Reads and writes go on after the signal.
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

Interruption::Interruption() {
  handle_with(on_signal);
}

Interruption::~Interruption() {
  handle_with(SIG_DFL);
}

const std::atomic<bool>* Interruption::flag() const {
  return &interrupted;
}

}  // namespace placewright::cli
