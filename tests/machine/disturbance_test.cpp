#include "machine/disturbance.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "machine/clock.h"
#include "machine/targets.h"

namespace placewright {
namespace {

TEST(DisturbanceOfCores, SleepingOnASingleCoreIsTimeThatOthersHad) {
  std::jthread bound([] {
    const int core = allowed_cores().front();
    bind_this_thread({core});
    const auto probe = probe_of_cores({core});
    probe->begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_GE(probe->lost(), 15);
  });
}

TEST(DisturbanceOfCores, AllIsLostOnACoreThatIsNotOnesOwn) {
  std::jthread bound([] {
    const int core = allowed_cores().front();
    bind_this_thread({core});
    const auto probe = probe_of_cores({core + 1});
    probe->begin();
    const auto begin = Clock::now();
    while (milliseconds(Clock::now() - begin) < 2) {
    }
    EXPECT_GE(probe->lost(), 2);
  });
}

TEST(DisturbanceOfCores, WaitingForTheOthersIsNoLossOnSeveral) {
  std::jthread bound([] {
    const auto cores = allowed_cores();
    if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
    bind_this_thread(cores);
    const auto probe = probe_of_cores(cores);
    probe->begin();
    const auto begin = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // The system may take a core away even so, but that is never called more than half.
    const double lost = probe->lost();
    EXPECT_LE(lost, milliseconds(Clock::now() - begin) / 2);
  });
}

// Two threads on one core wait for each other: whether a probe that is made meanwhile says so.
template <class MakeProbe>
void expect_loss_of_helpers(const std::vector<int>& cores, const MakeProbe& make_probe) {
  std::atomic<bool> over{false};
  std::atomic<int> helping{0};
  const auto help = [&] {
    bind_this_thread({cores.front()});
    ++helping;
    while (!over) {
    }
  };
  const std::jthread first(help);
  const std::jthread second(help);
  const std::jthread bound([&] {
    bind_this_thread(cores);
    while (helping < 2) std::this_thread::yield();
    const auto probe = make_probe();
    probe->begin();
    // A thread's waiting is counted when it gets the core, so this takes as long as it takes.
    constexpr int kMostLooks = 4000;
    int looks = 0;
    while (probe->lost() < 5 && ++looks < kMostLooks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_LT(looks, kMostLooks);
    over = true;
  });
}

TEST(DisturbanceOfCores, AHelperThatWaitsForACoreIsALossOnSeveral) {
  const auto cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
  expect_loss_of_helpers(cores, [&] { return probe_of_cores(cores); });
}

TEST(DisturbanceOfStreams, AThreadThatWaitsForACoreIsALoss) {
  expect_loss_of_helpers(allowed_cores(), [] { return probe_of_streams(2); });
}

TEST(DisturbanceOfStreams, WaitingForThemIsNoLoss) {
  const auto probe = probe_of_streams(2);
  probe->begin();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // The system may keep the thread from its core when it wakes up, but not for most of the time.
  const double lost = probe->lost();
  EXPECT_LT(lost, milliseconds(Clock::now() - begin) / 2);
}

}  // namespace
}  // namespace placewright
