// Threads, most of them bound to cores, that wait for each other.

#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "machine/clock.h"
#include "machine/targets.h"

namespace placewright {

// A worker that has a core of its own spins while it waits, and lets others run once in a while.
// One that has none (it drives another device, or copies) soon sleeps, because its core is
// somebody's.
class Waiting {
 public:
  explicit Waiting(const Target& target) : owns_core_(!target.cores.empty()) {}

  void pause();
  void reset() { spins_ = 0; }

 private:
  bool owns_core_;
  int spins_ = 0;
};

// One thread for each target, bound to its cores if it has any; all run `work(number)` until they
// end or one throws. The others then see `stopped()`, and the first exception is thrown again by
// `run`.
class Workers {
 public:
  explicit Workers(std::vector<Target> targets, const std::atomic<bool>* stop = nullptr)
      : targets_(std::move(targets)), outside_(stop) {}

  // `tick` is called now and then, by the caller's thread.
  void run(const std::function<void(std::size_t)>& work, const std::function<void()>& tick = {});

  [[nodiscard]] bool stopped() const {
    return failed_.load(std::memory_order_relaxed) || interrupted();
  }
  [[nodiscard]] bool interrupted() const {
    return outside_ != nullptr && outside_->load(std::memory_order_relaxed);
  }

  // Until the word has the value; false if the workers were stopped. `worker` is the caller's
  // number.
  bool wait(std::size_t worker, const std::atomic<std::uint64_t>& word, std::uint64_t value) const;

  // All workers meet; each meeting has its number, from 1. False if the workers were stopped.
  bool meet(std::size_t worker, std::uint64_t number);

 private:
  void fail();  // with the exception that is being handled

  std::vector<Target> targets_;
  const std::atomic<bool>* outside_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> arrived_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace placewright
