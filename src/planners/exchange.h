// What planners share that work on one problem at the same time: the best plan and the best bound
// of all of them.
//
// A planner gets it in Control::exchange. What it reports (Control::report) is offered here; what
// the others have found it takes at moments of its own choice, as at the end of a cycle of local
// search or between two slices of a solver. Values and bounds are read without a lock.
//
// A plan is taken over only after `is_right` has accepted it, so that a wrong plan of one planner
// spoils no other. Any thread may call any function.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "placewright/problem/plan.h"

namespace placewright {

class Exchange {
 public:
  // Whether a planner's plan is valid; called by several threads at once.
  using Check = std::function<bool(const std::string& planner, const Plan& plan)>;

  explicit Exchange(Check is_right) : is_right_(std::move(is_right)) {}

  [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }
  [[nodiscard]] double bound() const { return bound_.load(std::memory_order_relaxed); }
  // The best plan meets the best bound: nothing is left to find.
  [[nodiscard]] bool settled() const;

  // The best plan, where it is better than `value`; else null.
  [[nodiscard]] std::shared_ptr<const Plan> better_than(double value) const;
  [[nodiscard]] std::shared_ptr<const Plan> best() const { return better_than(kInfinity); }
  // Who offered the best plan; empty: nobody yet.
  [[nodiscard]] std::string found_by() const;

  // Taken over where it is better than all so far, and right.
  void offer(const std::string& planner, const Plan& plan);
  // The same, but dropped where such checks would take a large part of the time.
  void offer_in_passing(const std::string& planner, const Plan& plan);
  void raise_bound(double bound);
  // A plan that needs no check, as the one that the search starts from.
  void start_from(const Plan& plan);

 private:
  using Clock = std::chrono::steady_clock;

  void take(const std::string& planner, const Plan& plan);

  Check is_right_;
  std::atomic<double> value_{kInfinity};
  std::atomic<double> bound_{0};
  mutable std::mutex mutex_;  // for all below
  std::shared_ptr<const Plan> best_;
  std::string found_by_;
  Clock::time_point next_in_passing_;
};

// What others have found that is better than `value`; null: nothing is, or there are no others.
std::shared_ptr<const Plan> better_elsewhere(const std::shared_ptr<Exchange>& exchange,
                                             double value);

}  // namespace placewright
