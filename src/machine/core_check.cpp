#include "machine/core_check.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <memory>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "machine/clock.h"
#include "machine/disturbance.h"

namespace placewright {
namespace {

double processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// A step that no compiler leaves out: numbers that follow each other at random (xorshift).
std::uint64_t stepped(std::uint64_t state) {
  constexpr int kOperations = 256;
  for (int i = 0; i < kOperations; ++i) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
  }
  return state;
}

void compute(CoreShare& share, std::atomic<std::uint64_t>& sink) {
  bind_this_thread({share.core});
  std::uint64_t state = 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(share.core);
  double steps = 0;
  const double processor = processor_time();
  const Clock::time_point begin = Clock::now();
  while (share.elapsed < kProbe) {
    state = stepped(state);
    ++steps;
    share.elapsed = milliseconds(Clock::now() - begin);
  }
  share.processor = processor_time() - processor;
  share.work = steps / share.elapsed;
  sink.store(state, std::memory_order_relaxed);
}

// The most that a core did in a millisecond since the process began.
double most_work_with(std::span<const CoreShare> shares) {
  static std::atomic<double> most{0};
  for (const CoreShare& share : shares) {
    double known = most.load();
    while (share.work > known && !most.compare_exchange_weak(known, share.work)) {
    }
  }
  return most.load();
}

std::vector<int> cores_of(std::span<const Target> targets) {
  std::set<int> cores;
  for (const Target& target : targets) cores.insert(target.cores.begin(), target.cores.end());
  return {cores.begin(), cores.end()};
}

std::string doubt_of(std::span<const CoreShare> shares, double most_work) {
  for (const CoreShare& share : shares) {
    if (share.share() < kLeastShare) {
      return fmt::format("core {} was free for {:.0f} % of the time", share.core,
                         100 * share.share());
    }
    if (share.work < kLeastWork * most_work) {
      return fmt::format("core {} did {:.0f} % of the work that a core does", share.core,
                         100 * share.work / most_work);
    }
  }
  return {};
}

}  // namespace

std::vector<CoreShare> probe_cores(std::span<const int> cores) {
  const std::vector<int> allowed = allowed_cores();
  std::vector<CoreShare> shares;
  for (const int core : cores) {
    if (std::ranges::binary_search(allowed, core)) shares.push_back({.core = core});
  }
  std::atomic<std::uint64_t> sink{0};
  std::vector<std::jthread> threads;
  threads.reserve(shares.size());
  for (CoreShare& share : shares) threads.emplace_back([&] { compute(share, sink); });
  threads.clear();  // joins them
  return shares;
}

std::string doubt_of(const CoreEvidence& evidence) {
  for (const auto* shares : {&evidence.before, &evidence.after}) {
    if (std::string doubt = doubt_of(*shares, evidence.most_work); !doubt.empty()) return doubt;
  }
  const double cores = static_cast<double>(evidence.before.size());
  if (cores == 0 || evidence.elapsed <= 0) return {};
  const double waited = evidence.waited / (cores * evidence.elapsed);
  if (waited <= kLargestWait) return {};
  return fmt::format("threads waited for a core for {:.0f} % of the time", 100 * waited);
}

struct CoreCheck::State {
  explicit State(std::vector<int> chosen)
      : cores(std::move(chosen)), before(probe_cores(cores)), waits(probe_of_streams(1)) {
    waits->begin();
    begin = Clock::now();
  }

  std::vector<int> cores;
  std::vector<CoreShare> before;
  std::unique_ptr<DisturbanceProbe> waits;
  Clock::time_point begin;
};

CoreCheck::CoreCheck(std::vector<int> cores) {
  if (!cores.empty()) state_ = std::make_unique<State>(std::move(cores));
}
CoreCheck::CoreCheck(std::span<const Target> targets) : CoreCheck(cores_of(targets)) {}
CoreCheck::~CoreCheck() = default;
CoreCheck::CoreCheck(CoreCheck&&) noexcept = default;

CoreEvidence CoreCheck::evidence() const {
  if (!state_) return {};
  CoreEvidence evidence{.before = state_->before, .after = {}};
  evidence.waited = state_->waits->lost();
  evidence.elapsed = milliseconds(Clock::now() - state_->begin);
  evidence.after = probe_cores(state_->cores);
  (void)most_work_with(evidence.before);
  evidence.most_work = most_work_with(evidence.after);
  return evidence;
}

}  // namespace placewright
