#include "machine/fan_out.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace placewright::testing {
namespace {

// Makes `most` threads, then fails as the system does at its limit.
ThreadFactory limited_threads(int most) {
  return [made = 0, most](std::function<void()> body) mutable {
    if (made++ >= most) {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return start_thread(std::move(body));
  };
}

TEST(FanOut, EachNumberIsWorkedOnOnce) {
  for (const int threads : {-1, 1, 2, 7}) {
    std::vector<std::atomic<int>> times(100);
    FanOut{.threads = threads}.run(times.size(), [&](std::size_t number) { ++times[number]; });
    for (const auto& count : times) EXPECT_EQ(count, 1);
  }
}

TEST(FanOut, NoNumberNoWork) {
  FanOut{.threads = 4}.run(0, [](std::size_t) { FAIL(); });
}

TEST(FanOut, AllThreadsWorkAtTheSameTime) {
  constexpr std::size_t kThreads = 4;
  std::atomic<std::size_t> arrived{0};
  FanOut{.threads = kThreads}.run(kThreads, [&](std::size_t) {
    ++arrived;
    while (arrived < kThreads) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, kThreads);
}

TEST(FanOut, GoesOnWithTheThreadsThatCouldBeMade) {
  for (const int made : {0, 1, 3}) {
    std::vector<std::atomic<int>> times(50);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    FanOut{.threads = 900, .make_thread = limited_threads(made)}.run(
        times.size(), [&](std::size_t number) {
          ++times[number];
          const std::lock_guard guard(mutex);
          seen.insert(std::this_thread::get_id());
        });
    for (const auto& count : times) EXPECT_EQ(count, 1);
    EXPECT_LE(seen.size(), static_cast<std::size_t>(made) + 1);
  }
}

TEST(FanOut, ThrowsWhatTheWorkThrewAfterAllThreadsHaveEnded) {
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};
  std::atomic<int> told{0};
  const FanOut fan_out{.threads = 4, .on_failure = [&] {
                         ++told;
                         stop = true;
                       }};
  const auto work = [&](std::size_t number) {
    ++running;
    while (number != 3 && !stop) std::this_thread::yield();
    --running;
    if (number == 3) throw std::runtime_error("number 3 failed");
  };
  try {
    fan_out.run(1000, work);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "number 3 failed");
  }
  EXPECT_EQ(running, 0);
  EXPECT_EQ(told, 1);
}

TEST(FanOut, AnExceptionInTheCallingThreadWaitsForTheOthers) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};
  const auto work = [&](std::size_t) {
    if (std::this_thread::get_id() == caller) throw std::runtime_error("the caller failed");
    ++running;
    while (!stop) std::this_thread::yield();
    --running;
  };
  EXPECT_THROW((FanOut{.threads = 3, .on_failure = [&] { stop = true; }}.run(3, work)),
               std::runtime_error);
  EXPECT_EQ(running, 0);
}

}  // namespace
}  // namespace placewright::testing
