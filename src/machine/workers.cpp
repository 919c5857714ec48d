#include "machine/workers.h"

#include <algorithm>
#include <ctime>
#include <thread>

namespace placewright {

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

double thread_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double LostTime::so_far() const {
  if (!counts_) return 0;
  const double used = thread_time() - processor_;
  return std::max(0.0, milliseconds(Clock::now() - start_) - used);
}

void Waiting::pause() {
  constexpr int kSpins = 1 << 14;
  if (++spins_ < kSpins) {
    // Long enough not to starve the memory bus, short against any hand-over.
    for (int i = 0; i < 8; ++i) asm volatile("" ::: "memory");
    return;
  }
  std::this_thread::yield();
}

void Workers::run(const std::function<void(std::size_t)>& work, const std::function<void()>& tick) {
  constexpr std::chrono::milliseconds kTick{20};
  std::atomic<std::size_t> ended{0};
  std::vector<std::jthread> threads;
  threads.reserve(targets_.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    threads.emplace_back([this, i, &work, &ended] {
      try {
        if (!targets_[i].cores.empty()) bind_this_thread(targets_[i].cores);
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        failed_.store(true, std::memory_order_relaxed);
      }
      ended.fetch_add(1, std::memory_order_release);
    });
  }
  while (tick && ended.load(std::memory_order_acquire) < targets_.size()) {
    std::this_thread::sleep_for(kTick);
    tick();
  }
  threads.clear();  // joins
  if (failure_) std::rethrow_exception(failure_);
}

bool Workers::wait(const std::atomic<std::uint64_t>& word, std::uint64_t value) const {
  Waiting waiting;
  while (word.load(std::memory_order_acquire) != value) {
    if (stopped()) return false;
    waiting.pause();
  }
  return true;
}

bool Workers::meet(std::uint64_t number) {
  const std::uint64_t all = number * targets_.size();
  arrived_.fetch_add(1, std::memory_order_acq_rel);
  Waiting waiting;
  while (arrived_.load(std::memory_order_acquire) < all) {
    if (stopped()) return false;
    waiting.pause();
  }
  return true;
}

}  // namespace placewright
