#include "planners/exchange.h"

#include <cmath>

namespace placewright {
namespace {

constexpr int kRestOfCheck = 20;  // a check in passing is followed by so many times its duration

}  // namespace

bool Exchange::settled() const {
  const double best = value();
  return best < kInfinity && gap(best, bound()) <= kOptimalGap;
}

std::shared_ptr<const Plan> Exchange::better_than(double value) const {
  if (!(this->value() < value)) return nullptr;
  const std::lock_guard guard(mutex_);
  return best_;
}

std::string Exchange::found_by() const {
  const std::lock_guard guard(mutex_);
  return found_by_;
}

void Exchange::offer(const std::string& planner, const Plan& plan) {
  if (plan.value < value() && is_right_(planner, plan)) take(planner, plan);
}

void Exchange::offer_in_passing(const std::string& planner, const Plan& plan) {
  if (!(plan.value < value())) return;
  const auto begin = Clock::now();
  {
    const std::lock_guard guard(mutex_);
    if (begin < next_in_passing_) return;
  }
  offer(planner, plan);
  const auto end = Clock::now();
  const std::lock_guard guard(mutex_);
  next_in_passing_ = end + kRestOfCheck * (end - begin);
}

void Exchange::raise_bound(double bound) {
  if (!std::isfinite(bound)) return;
  double known = this->bound();
  while (bound > known && !bound_.compare_exchange_weak(known, bound, std::memory_order_relaxed)) {
  }
}

void Exchange::start_from(const Plan& plan) {
  take({}, plan);
}

void Exchange::take(const std::string& planner, const Plan& plan) {
  auto copy = std::make_shared<const Plan>(plan);
  const std::lock_guard guard(mutex_);
  if (best_ && plan.value >= best_->value) return;
  value_.store(plan.value, std::memory_order_relaxed);
  best_ = std::move(copy);
  found_by_ = planner;
}

std::shared_ptr<const Plan> better_elsewhere(const std::shared_ptr<Exchange>& exchange,
                                             double value) {
  return exchange ? exchange->better_than(value) : nullptr;
}

}  // namespace placewright
