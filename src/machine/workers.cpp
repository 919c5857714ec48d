#include "machine/workers.h"

#include <chrono>
#include <system_error>
#include <thread>

namespace placewright {

void Waiting::pause() {
  constexpr int kSpins = 1 << 14;
  constexpr int kSpinsWithoutCore = 1 << 8;
  constexpr std::chrono::microseconds kSleep{20};
  if (++spins_ < (owns_core_ ? kSpins : kSpinsWithoutCore)) {
    // Long enough not to starve the memory bus, short against any hand-over.
    for (int i = 0; i < 8; ++i) asm volatile("" ::: "memory");
  } else if (owns_core_) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

Workers::Workers(std::vector<Target> targets, const std::atomic<bool>* stop)
    : targets_(std::move(targets)), shares_cores_(targets_.size(), 0), outside_(stop) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    bells_.push_back(std::make_unique<Doorbell>());
    for (std::size_t j = 0; j < i; ++j) {
      if (share_a_core(targets_[i], targets_[j])) shares_cores_[i] = shares_cores_[j] = 1;
    }
  }
}

void Workers::run(const std::function<void(std::size_t)>& work, const std::function<void()>& tick) {
  constexpr std::chrono::milliseconds kTick{20};
  std::atomic<std::size_t> ended{0};
  std::vector<std::jthread> threads;
  threads.reserve(targets_.size());
  try {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      threads.emplace_back([this, i, &work, &ended] {
        try {
          if (!targets_[i].cores.empty()) bind_this_thread(targets_[i].cores);
          work(i);
        } catch (...) {
          fail();
        }
        ended.fetch_add(1, std::memory_order_release);
      });
    }
  } catch (const std::system_error&) {  // no more threads: those that wait for it must not
    fail();
  }
  while (tick && ended.load(std::memory_order_acquire) < threads.size()) {
    std::this_thread::sleep_for(kTick);
    tick();
  }
  threads.clear();  // joins
  if (failure_) std::rethrow_exception(failure_);
}

void Workers::fail() {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
  failed_.store(true, std::memory_order_relaxed);
}

bool Workers::wait(std::size_t worker, const std::atomic<std::uint64_t>& word,
                   std::uint64_t value) const {
  Waiting waiting(targets_[worker]);
  while (word.load(std::memory_order_acquire) != value) {
    if (stopped()) return false;
    waiting.pause();
  }
  return true;
}

bool Workers::meet(std::size_t worker, std::uint64_t number) {
  const std::uint64_t all = number * targets_.size();
  const auto complete = [&] { return arrived_.load(std::memory_order_acquire) >= all; };
  arrived_.fetch_add(1, std::memory_order_acq_rel);
  if (complete()) {
    for (std::size_t other = 0; other < targets_.size(); ++other) {
      if (shares_cores(other)) ring(other);
    }
    return !stopped();
  }
  if (shares_cores(worker)) return sleep_until(worker, complete);
  Waiting waiting(targets_[worker]);
  while (!complete()) {
    if (stopped()) return false;
    waiting.pause();
  }
  return true;
}

}  // namespace placewright
