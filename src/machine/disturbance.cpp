#include "machine/disturbance.h"

#include <algorithm>
#include <ctime>

#include <sched.h>
#include <sys/resource.h>

#include "machine/clock.h"

namespace placewright {
namespace {

constexpr double kTimeSlice = 3;  // ms, of Linux's scheduler with its usual settings

double processor_time_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

long involuntary_switches_of_this_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

class CoreProbe final : public DisturbanceProbe {
 public:
  explicit CoreProbe(std::vector<int> cores) : cores_(std::move(cores)) {}

  void begin() override {
    began_on_own_core_ = on_own_core();
    if (cores_.size() > 1) switches_ = involuntary_switches_of_this_thread();
    processor_ = processor_time_of_this_thread();
    begin_ = Clock::now();
  }

  [[nodiscard]] double lost() const override {
    const double elapsed = milliseconds(Clock::now() - begin_);
    if (!began_on_own_core_ || !on_own_core()) return elapsed;
    if (cores_.size() == 1) {
      return std::max(0.0, elapsed - (processor_time_of_this_thread() - processor_));
    }
    const auto switches = static_cast<double>(involuntary_switches_of_this_thread() - switches_);
    return std::min(switches * kTimeSlice, elapsed / 2);
  }

 private:
  [[nodiscard]] bool on_own_core() const {
    return std::binary_search(cores_.begin(), cores_.end(), sched_getcpu());
  }

  std::vector<int> cores_;
  bool began_on_own_core_ = true;
  long switches_ = 0;
  double processor_ = 0;
  Clock::time_point begin_;
};

}  // namespace

std::unique_ptr<DisturbanceProbe> probe_of_cores(std::vector<int> cores) {
  return std::make_unique<CoreProbe>(std::move(cores));
}

}  // namespace placewright
