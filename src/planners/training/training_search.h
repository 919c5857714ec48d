// What the searches for training plans share: the best plan so far, the time, and what there is to
// choose from.

#pragma once

#include <chrono>
#include <vector>

#include "planners/training/training_planner.h"

namespace placewright {

// A kind of group: so many GPUs of one node of a pool.
struct GroupType {
  std::size_t pool = 0;
  int degree = 1;
};

class TrainingSearch {
 public:
  TrainingSearch(const StepModel& model, const TrainingLimits& limits);

  [[nodiscard]] const StepModel& model() const { return *model_; }
  [[nodiscard]] const TrainingProblem& problem() const { return model_->problem(); }
  [[nodiscard]] const TrainingPlan& best() const { return best_; }
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] bool should_stop() const;

  // Sizes that divide the batch and were measured somewhere.
  [[nodiscard]] std::vector<int> micro_batch_sizes() const;
  [[nodiscard]] std::vector<GroupType> group_types(int micro_batch) const;
  // Whether the groups of each pool go into its nodes.
  [[nodiscard]] bool fits_nodes(const TrainingPlan& plan) const;

  // Shares out the micro-batches and keeps the plan if it is the best. Returns its value.
  double offer(TrainingPlan plan);

 private:
  const StepModel* model_;
  TrainingLimits limits_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  TrainingPlan best_;
  double value_ = kInfinity;
};

// The searches. Each ends when the time is over; `search_all_plans` answers whether it saw all.
bool search_all_plans(TrainingSearch& search);
void search_mixed_stages(TrainingSearch& search);
void search_sized_stages(TrainingSearch& search);
void search_chained_stages(TrainingSearch& search);
void improve_training_plan(TrainingSearch& search);

// No plan costs less, as far as that is below `value`, the best plan known. Infinite if there is no
// plan.
double training_bound(const StepModel& model, double value, std::string& method,
                      const TrainingLimits& limits = {});

}  // namespace placewright
