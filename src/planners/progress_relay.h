// Progress from any thread to an observer that is called in one.
//
// Whoever observes a planner updates a display or a window, and expects to be called where it
// asked for the plan. Planners find better plans in other threads too. What those report waits here
// until the owner, the thread that made the relay, comes by; it gets the reports in the order in
// which they were made.

#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "planners/planner.h"

namespace placewright {

class ProgressRelay {
 public:
  explicit ProgressRelay(Control::Observer observer)
      : observer_(std::move(observer)), owner_(std::this_thread::get_id()) {}

  // In the owner's thread the observer is called at once, after what waits.
  void report(Progress progress);
  // In the owner's thread: calls the observer with what waits. In others: does nothing.
  void deliver();

 private:
  [[nodiscard]] bool in_owner_thread() const { return std::this_thread::get_id() == owner_; }

  Control::Observer observer_;
  std::thread::id owner_;
  std::atomic<bool> waiting_any_{false};  // looked at often, and mostly false
  std::mutex mutex_;
  std::vector<Progress> waiting_;
};

}  // namespace placewright
