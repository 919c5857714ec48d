#include "planners/flow/list_search.h"

#include <cmath>
#include <utility>
#include <vector>

#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "problem/least_time.h"

namespace placewright {
namespace {

constexpr double kOneOp = 0.7;    // of the moves
constexpr double kWarmest = 0.2;  // in mean op times
// In mean op times.
constexpr double kShort = 1;
constexpr double kLong = 5;
constexpr double kOfModel = 2;

}  // namespace

ListSearch::ListSearch(const Problem& problem, Control& control)
    : problem_(problem), control_(control), random_(control.budget().seed) {
  double total = 0;
  for (const OpId op : problem.ops()) total += least_time(problem, op);
  if (problem.op_count() > 0) mean_time_ = total / static_cast<double>(problem.op_count());
}

std::optional<Plan> ListSearch::plan_of(const Table<OpId, double>& moments) {
  Table<OpId, double> priority(problem_.op_count(), 0);
  for (const OpId op : problem_.ops()) priority[op] = -moments[op];
  const std::vector<OpId> order = list_order(problem_, priority);
  DeviceChoice choice = DeviceChoice::within_memory(problem_);
  return earliest_end_plan(problem_, order, choice, control_);
}

void ListSearch::offer(const Table<OpId, double>& moments) {
  std::optional<Plan> plan = plan_of(moments);
  if (!plan || (best_ && plan->value >= best_->value)) return;
  best_ = std::move(plan);
  best_moments_ = moments;
}

void ListSearch::begin_cycle() {
  moments_ = best_moments_;
  value_ = best_->value;
}

void ListSearch::try_move(double warmth) {
  moved_ = moments_;
  const OpId op{random_.below(problem_.op_count())};
  if (random_.chance(kOneOp)) {
    move_op(op);
  } else {
    move_model(op);
  }
  std::optional<Plan> plan = plan_of(moved_);
  if (!plan) return;
  const double temperature = kWarmest * mean_time_ * warmth;
  if (plan->value > value_ - temperature * std::log(1 - random_.unit())) return;
  std::swap(moments_, moved_);
  value_ = plan->value;
  if (value_ >= best_->value) return;
  best_ = std::move(plan);
  best_moments_ = moments_;
}

void ListSearch::move_op(OpId op) {
  const double by = shift(random_.chance(0.5) ? kShort : kLong);
  moved_[op] += by;
  if (random_.chance(0.5)) return;
  for (const OpId reader : problem_.successors(op)) moved_[reader] += by;
}

// All of its model that is not after it, or not before it.
void ListSearch::move_model(OpId op) {
  const double by = shift(kOfModel);
  const bool before = random_.chance(0.5);
  const double moment = moments_[op];
  for (const OpId other : problem_.ops()) {
    if (problem_.op(other).model != problem_.op(op).model) continue;
    if (before ? moments_[other] <= moment : moments_[other] >= moment) moved_[other] += by;
  }
}

}  // namespace placewright
