#include "machine/disturbance.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "machine/clock.h"

namespace placewright {
namespace {

double processor_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

// A file that is read again and again.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY)) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Its first characters; empty if it cannot be read (any more).
  [[nodiscard]] std::string_view read(std::span<char> room) const {
    const ssize_t count = pread(descriptor_, room.data(), room.size(), 0);
    return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  int descriptor_;
};

// How long the threads of this process have been ready to run and had no core: the second number of
// /proc/self/task/*/schedstat, in nanoseconds. The thread that looks after those that compute does
// not count, since it keeps nobody waiting: the main thread, unless that one computes.
class WaitingForCores {
 public:
  explicit WaitingForCores(bool computes = true) {
    const pid_t looks_after = computes ? getpid() : gettid();
    const bool left_out = !computes || gettid() != getpid();
    std::error_code failed;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
      const std::string thread = task.path().filename();
      if (left_out && thread == std::to_string(looks_after)) continue;
      threads_.emplace_back(task.path() / "schedstat");
    }
  }

  [[nodiscard]] double milliseconds() const {
    double total = 0;
    std::array<char, 64> room{};
    for (const OpenFile& thread : threads_) {
      const std::string_view text = thread.read(room);
      const auto gap = text.find(' ');
      if (gap == std::string_view::npos) continue;
      std::uint64_t nanoseconds = 0;
      std::from_chars(text.data() + gap + 1, text.data() + text.size(), nanoseconds);
      total += static_cast<double>(nanoseconds) / 1e6;
    }
    return total;
  }

 private:
  std::vector<OpenFile> threads_;
};

class CoreProbe final : public DisturbanceProbe {
 public:
  explicit CoreProbe(std::vector<int> cores) : cores_(std::move(cores)) {
    if (cores_.size() > 1) waiting_.emplace();
  }

  void begin() override {
    began_on_own_core_ = on_own_core();
    if (waiting_) waited_ = waiting_->milliseconds();
    processor_ = processor_time_of_this_thread();
    begin_ = Clock::now();
  }

  [[nodiscard]] double lost() const override {
    const double elapsed = milliseconds(Clock::now() - begin_);
    if (!began_on_own_core_ || !on_own_core()) return elapsed;
    if (waiting_) return std::min(waiting_->milliseconds() - waited_, elapsed / 2);
    return std::max(0.0, elapsed - (processor_time_of_this_thread() - processor_));
  }

 private:
  [[nodiscard]] bool on_own_core() const {
    return std::binary_search(cores_.begin(), cores_.end(), sched_getcpu());
  }

  std::vector<int> cores_;
  bool began_on_own_core_ = true;
  std::optional<WaitingForCores> waiting_;  // of several cores
  double waited_ = 0;
  double processor_ = 0;
  Clock::time_point begin_;
};

class StreamsProbe final : public DisturbanceProbe {
 public:
  explicit StreamsProbe(int streams, bool computes = true)
      : streams_(streams), waiting_(computes) {}

  void begin() override { waited_ = waiting_.milliseconds(); }
  [[nodiscard]] double lost() const override {
    return (waiting_.milliseconds() - waited_) / streams_;
  }

 private:
  int streams_;
  WaitingForCores waiting_;
  double waited_ = 0;
};

}  // namespace

std::unique_ptr<DisturbanceProbe> probe_of_cores(std::vector<int> cores) {
  return std::make_unique<CoreProbe>(std::move(cores));
}

std::unique_ptr<DisturbanceProbe> probe_of_streams(int streams) {
  return std::make_unique<StreamsProbe>(streams);
}

std::unique_ptr<DisturbanceProbe> probe_of_other_threads() {
  return std::make_unique<StreamsProbe>(1, false);
}

}  // namespace placewright
