#include "machine/disturbance.h"

#include <atomic>
#include <filesystem>
#include <fstream>
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

constexpr double kRounding = 1e-6;

// How long the threads of this process have been ready to run and had no core, by the system's own
// count.
double kept_waiting() {
  double total = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    double ran = 0;
    double waited = 0;
    if (std::ifstream(task.path() / "schedstat") >> ran >> waited) total += waited / 1e6;
  }
  return total;
}

TEST(DisturbanceOfCores, WaitingForTheOthersIsNoLossOnSeveral) {
  std::jthread bound([] {
    const auto cores = allowed_cores();
    if (cores.size() < 2) GTEST_SKIP() << "needs two cores";
    bind_this_thread(cores);
    const auto probe = probe_of_cores(cores);
    const double before = kept_waiting();
    probe->begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    // The system may take a core away even so, and no more than that is lost.
    const double lost = probe->lost();
    EXPECT_LE(lost, kept_waiting() - before + kRounding);
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
  const double before = kept_waiting();
  probe->begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // The system may keep the thread from its core when it wakes up, and no more than that is lost.
  const double lost = probe->lost();
  EXPECT_LE(lost, kept_waiting() - before + kRounding);
}

}  // namespace
}  // namespace placewright
