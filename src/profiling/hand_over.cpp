#include "profiling/hand_over.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "backends/buffer_copy.h"
#include "backends/target_devices.h"
#include "machine/workers.h"
#include "profiling/robust_line.h"

namespace placewright {
namespace {

constexpr std::size_t kSmallest = std::size_t{4} << 10U;
constexpr std::size_t kLargest = std::size_t{4} << 20U;

// Hand-overs are short: little waiting already spoils one. They are cheap, so there are many.
constexpr double kFree = 0.002;
constexpr std::size_t kRoundsPerRun = 3;
constexpr std::size_t kFewestRounds = 20;

std::size_t rounds_of(const MeasureOptions& options) {
  return options.warm_up + std::max(kFewestRounds, kRoundsPerRun * options.repeat);
}

void drop_warm_up(std::vector<TimedRun>& runs, const MeasureOptions& options) {
  runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(options.warm_up));
}

// Into a block that stays in the nearest cache, by the widest loads that there are: adding the
// words up would take longer than fetching them.
std::uint64_t read_all(const HostBuffer& memory) {
  std::array<std::byte, kSmallest> block;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + block.size() <= memory.size(); i += block.size()) {
    std::memcpy(block.data(), memory.data() + i, block.size());
    std::uint64_t word = 0;
    std::memcpy(&word, block.data(), sizeof(word));
    sum += word;
    asm volatile("" : : "r"(block.data()) : "memory");  // all of the block is wanted
  }
  return sum;
}

// Tensors of one size through one memory, as often as the options say.
class Exchange {
 public:
  Exchange(const Target& from, const Target& to, std::size_t bytes, const MeasureOptions& options)
      : from_(from),
        to_(to),
        memory_(bytes),
        own_(bytes),
        options_(options),
        workers_({from, to}, options.stop) {
    written_.resize(rounds());
    lost_.resize(rounds());
  }

  void run() {
    workers_.run([this](std::size_t worker) { worker == 0 ? produce() : consume(); });
    options_.check();
    // What the other side lost is known only now.
    for (std::size_t round = 0; round < rounds(); ++round) {
      across_[round].disturbed = across_[round].disturbed || lost_[round] != 0;
    }
    drop_warm_up(across_, options_);
    drop_warm_up(alone_, options_);
  }

  [[nodiscard]] std::size_t rounds() const { return rounds_of(options_); }
  [[nodiscard]] const std::vector<TimedRun>& across() const { return across_; }
  [[nodiscard]] const std::vector<TimedRun>& alone() const { return alone_; }

 private:
  void produce() {
    RunWatch watch(from_, kFree);
    for (std::size_t round = 0; round < rounds(); ++round) {
      if (!workers_.meet(0, round + 1)) return;
      watch.begin();
      write(memory_, round);
      written_[round] = Clock::now();
      flag_.store(round + 1, std::memory_order_release);
      lost_[round] = watch.end().disturbed ? 1 : 0;
    }
  }

  void consume() {
    RunWatch watch(to_, kFree);
    for (std::size_t round = 0; round < rounds(); ++round) {
      if (!workers_.meet(1, round + 1)) return;
      watch.begin();
      if (!workers_.wait(1, flag_, round + 1)) return;
      sink_ = sink_ + read_all(memory_);
      const double time = milliseconds(Clock::now() - written_[round]);
      const TimedRun whole = watch.end();
      across_.push_back({time, whole.lost ? std::optional(0.0) : std::nullopt, whole.disturbed});
      write(own_, round);
      watch.begin();
      sink_ = sink_ + read_all(own_);
      alone_.push_back(watch.end());
    }
  }

  static void write(const HostBuffer& memory, std::size_t round) {
    std::memset(memory.data(), static_cast<int>(round & 0x7fU) + 1, memory.size());
  }

  Target from_;
  Target to_;
  HostBuffer memory_;
  HostBuffer own_;  // what the reader writes itself
  const MeasureOptions& options_;
  Workers workers_;
  std::atomic<std::uint64_t> flag_{0};
  std::vector<Clock::time_point> written_;
  std::vector<char> lost_;
  std::vector<TimedRun> across_;
  std::vector<TimedRun> alone_;
  volatile std::uint64_t sink_ = 0;
};

// Tensors of one size from one memory to another.
std::vector<TimedRun> timed_copies(const Target& from, const Target& to, std::size_t bytes,
                                   const MeasureOptions& options) {
  const std::unique_ptr<Buffer> source = runtime_named(from.backend).allocate(from.device, bytes);
  const std::unique_ptr<Buffer> copied = runtime_named(to.backend).allocate(to.device, bytes);
  BufferCopy copy(from, *source, to, *copied);
  std::vector<TimedRun> runs;
  Workers workers({to}, options.stop);
  workers.run([&](std::size_t) {
    RunWatch watch(to, kFree);
    while (runs.size() < rounds_of(options) && !workers.stopped()) {
      watch.begin();
      copy.run();
      runs.push_back(watch.end());
    }
  });
  options.check();
  drop_warm_up(runs, options);
  return runs;
}

// The cost of a size, and the runs that it was measured in.
std::pair<double, Measured> cost_of(const Target& from, const Target& to, std::size_t bytes,
                                    const MeasureOptions& options) {
  if (device_of(from).space != device_of(to).space) {
    const Measured copies = summary_of(timed_copies(from, to, bytes, options));
    return {copies.median, copies};
  }
  Exchange exchange(from, to, bytes, options);
  exchange.run();
  const Measured across = summary_of(exchange.across());
  return {std::max(0.0, across.median - summary_of(exchange.alone()).median), across};
}

}  // namespace

std::string HandOver::doubt() const {
  if (kept < rejected) {
    return fmt::format("{} of {} hand-overs were disturbed", rejected, kept + rejected);
  }
  return {};
}

HandOver fitted(std::vector<HandOverPoint> points) {
  constexpr double kSmall = 65536;
  std::vector<LinePoint> costs;
  for (const HandOverPoint& point : points) costs.push_back({point.bytes, point.milliseconds});
  const Line line = robust_line(costs, kSmall);
  HandOver result;
  result.latency = line.offset;
  result.bandwidth = line.slope > 0 ? 1 / line.slope : std::numeric_limits<double>::infinity();
  std::vector<double> errors;
  for (const auto& [x, y] : points) {
    if (y > 0) errors.push_back(std::abs(line.at(x) - y) / y);
  }
  result.error = median(std::move(errors));
  result.points = std::move(points);
  return result;
}

HandOver measure_hand_over(const Target& from, const Target& to, const MeasureOptions& options) {
  std::vector<HandOverPoint> points;
  std::size_t kept = 0;
  std::size_t rejected = 0;
  bool watched = true;
  for (std::size_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
    const auto [cost, runs] = cost_of(from, to, bytes, options);
    points.push_back({static_cast<double>(bytes), cost});
    kept += runs.kept;
    rejected += runs.rejected;
    watched = watched && runs.watched;
  }
  HandOver result = fitted(std::move(points));
  result.kept = kept;
  result.rejected = rejected;
  result.watched = watched;
  return result;
}

Measured measure_wake_up(const Target& all, const Target& woken, const MeasureOptions& options) {
  constexpr std::chrono::microseconds kSegment{500};  // long enough for the other one to be asleep
  std::atomic<std::uint64_t> ended{0};
  Clock::time_point end;
  std::vector<TimedRun> runs;
  Workers workers({all, woken}, options.stop);
  workers.run([&](std::size_t worker) {
    for (std::size_t round = 1; round <= rounds_of(options); ++round) {
      if (!workers.meet(worker, round)) return;
      if (worker == 0) {
        const Clock::time_point begin = Clock::now();
        while (Clock::now() - begin < kSegment) {
        }
        end = Clock::now();
        ended.store(round, std::memory_order_release);
        workers.ring(1);
        continue;
      }
      const auto has_ended = [&] { return ended.load(std::memory_order_acquire) == round; };
      if (!workers.sleep_until(1, has_ended)) return;
      // Nobody can tell whether it slept on because others had the core.
      runs.push_back({.milliseconds = milliseconds(Clock::now() - end), .lost = std::nullopt});
    }
  });
  options.check();
  drop_warm_up(runs, options);
  return summary_of(runs);
}

}  // namespace placewright
