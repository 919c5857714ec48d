// Threads bound to cores that wait for each other, and the time they really had.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "machine/targets.h"

namespace placewright {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration);

// Processor time of the calling thread, in milliseconds.
double thread_time();

// The time that the core of a thread gave to others since then, in milliseconds. On several cores
// it cannot be told, the others' share of the work not being this thread's, and is 0.
class LostTime {
 public:
  explicit LostTime(const Target& target)
      : counts_(target.cores.size() == 1), start_(Clock::now()), processor_(thread_time()) {}

  [[nodiscard]] double so_far() const;

 private:
  bool counts_;
  Clock::time_point start_;
  double processor_;
};

// A worker waits on its own core, so it spins; once in a while it lets others run.
class Waiting {
 public:
  void pause();

 private:
  int spins_ = 0;
};

// One thread for each target, all running `work(number)` until they end or one throws. The others
// then see `stopped()`, and the first exception is thrown again by `run`.
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

  // Until the word has the value; false where the workers were stopped.
  bool wait(const std::atomic<std::uint64_t>& word, std::uint64_t value) const;

  // All workers meet; each meeting has its number, from 1.
  bool meet(std::uint64_t number);

 private:
  std::vector<Target> targets_;
  const std::atomic<bool>* outside_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> arrived_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace placewright
