// Local search over lists: ops in the order of moments, each on the device where it ends first.
//
// A solution is a moment for each op. Of the ops whose inputs are placed the one with the earliest
// moment is next, and goes into the gap where it ends first (list_schedule.h). Moments come from
// outside; from the best of them it anneals: an op moves in time, alone or with its readers, or all
// of a model before or after a moment does. So the models' shares of the devices change with one
// move, which takes very many in a search over placements and orders (methods/sweep.h); that one
// knows schedules which no list makes.
//
// The temperature falls in cycles, each twice as long as the one before and begun at the best list.
// One evaluation takes as long as HEFT. The same seed gives the same lists.

#pragma once

#include <cstddef>
#include <optional>

#include "planners/planner.h"
#include "planners/random_numbers.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

class ListSearch {
 public:
  ListSearch(const Problem& problem, Control& control);

  // Makes the plan of these moments and keeps it if it is the best.
  void offer(const Table<OpId, double>& moments);

  // Until `stop`, or until cycles bring nothing.
  template <class Stop>
  void anneal(const Stop& stop) {
    if (!best_ || problem_.op_count() == 0) return;
    for (std::size_t length = kFirstCycle, idle = 0; idle < kIdleCycles; length *= 2) {
      const double before = best_->value;
      begin_cycle();
      for (std::size_t i = 0; i < length; ++i) {
        if (stop()) return;
        const double left = 1 - static_cast<double>(i) / static_cast<double>(length);
        try_move(left * left);
      }
      idle = best_->value < before ? 0 : idle + 1;
    }
  }

  [[nodiscard]] const std::optional<Plan>& best() const { return best_; }

 private:
  static constexpr std::size_t kFirstCycle = 4000;
  static constexpr std::size_t kIdleCycles = 3;

  [[nodiscard]] std::optional<Plan> plan_of(const Table<OpId, double>& moments);
  void begin_cycle();
  void try_move(double warmth);
  void move_op(OpId op);
  void move_model(OpId op);
  [[nodiscard]] double shift(double most) { return most * mean_time_ * (2 * random_.unit() - 1); }

  const Problem& problem_;
  Control& control_;
  double mean_time_ = 0;
  RandomNumbers random_;
  std::optional<Plan> best_;
  Table<OpId, double> best_moments_;
  Table<OpId, double> moments_;  // of the list at hand
  Table<OpId, double> moved_;    // of the one that is tried
  double value_ = kInfinity;
};

}  // namespace placewright
