// Threads, most of them bound to cores, that wait for each other.

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
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

// Where a thread sleeps until it is rung.
class Doorbell {
 public:
  void ring() {
    { const std::lock_guard lock(mutex_); }  // whoever looked before the ring is asleep by now
    bell_.notify_all();
  }
  // Until the condition holds, or for kLongest at most: then it is time to look at other things.
  template <class Condition>
  void sleep(const Condition& condition) {
    constexpr std::chrono::milliseconds kLongest{20};
    std::unique_lock lock(mutex_);
    bell_.wait_for(lock, kLongest, condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
};

// One thread for each target, bound to its cores if it has any; all run `work(number)` until they
// end or one throws. The others then see `stopped()`, and the first exception is thrown again by
// `run`.
//
// A worker whose cores belong to another worker too must not spin while that one may compute. It
// sleeps until its turn (`sleep_until`), is rung when that may have come, and from then on has its
// cores for itself.
class Workers {
 public:
  explicit Workers(std::vector<Target> targets, const std::atomic<bool>* stop = nullptr);

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

  // The same, asleep.
  template <class Condition>
  bool sleep_until(std::size_t worker, const Condition& condition) {
    while (!condition()) {
      if (stopped()) return false;
      bells_[worker]->sleep(condition);
    }
    return true;
  }
  void ring(std::size_t worker) { bells_[worker]->ring(); }
  [[nodiscard]] bool shares_cores(std::size_t worker) const { return shares_cores_[worker] != 0; }

  // All workers meet; each meeting has its number, from 1. False if the workers were stopped.
  bool meet(std::size_t worker, std::uint64_t number);

 private:
  void fail();  // with the exception that is being handled

  std::vector<Target> targets_;
  std::vector<char> shares_cores_;  // with another worker
  std::vector<std::unique_ptr<Doorbell>> bells_;
  const std::atomic<bool>* outside_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> arrived_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace placewright
