#include "planners/training/training_planner.h"

#include <algorithm>
#include <set>

#include "planners/training/micro_batch_shares.h"
#include "planners/training/training_search.h"

namespace placewright {
namespace {

constexpr int kSmallCluster = 8;  // GPUs
constexpr std::size_t kSmallModel = 6;
constexpr double kOptimalGap = 1e-9;

bool is_small(const TrainingProblem& problem) {
  int gpus = 0;
  for (const NodePool& pool : problem.pools) gpus += pool.gpus * pool.count;
  return gpus <= kSmallCluster && problem.layers() <= kSmallModel;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TrainingSearch::TrainingSearch(const StepModel& model, const TrainingLimits& limits)
    : model_(&model), limits_(limits) {}

bool TrainingSearch::should_stop() const {
  if (limits_.stop != nullptr && limits_.stop->load(std::memory_order_relaxed)) return true;
  return seconds_since(begin_) > limits_.seconds;
}

std::vector<int> TrainingSearch::micro_batch_sizes() const {
  std::set<int> sizes;
  for (const NodePool& pool : problem().pools) {
    for (const LayerTimes& entry : problem().kinds[pool.kind].times) {
      if (problem().batch % entry.micro_batch == 0) sizes.insert(entry.micro_batch);
    }
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<GroupType> TrainingSearch::group_types(int micro_batch) const {
  std::vector<GroupType> types;
  for (std::size_t p = 0; p < problem().pools.size(); ++p) {
    const NodePool& pool = problem().pools[p];
    for (const LayerTimes& entry : problem().kinds[pool.kind].times) {
      if (entry.micro_batch == micro_batch && entry.degree <= pool.gpus) {
        types.push_back({p, entry.degree});
      }
    }
  }
  return types;
}

bool TrainingSearch::fits_nodes(const TrainingPlan& plan) const {
  for (std::size_t p = 0; p < problem().pools.size(); ++p) {
    std::vector<int> degrees;
    for (const TrainingStage& stage : plan.stages) {
      for (const StageReplica& replica : stage.replicas) {
        if (replica.pool == p) degrees.push_back(replica.degree);
      }
    }
    const NodePool& pool = problem().pools[p];
    if (nodes_needed(std::move(degrees), pool.gpus) > pool.count) return false;
  }
  return true;
}

double TrainingSearch::offer(TrainingPlan plan) {
  const double value = share_out(*model_, plan);
  if (value < value_) {
    value_ = value;
    best_ = std::move(plan);
  }
  return value;
}

TrainingOutcome plan_training(const TrainingProblem& problem, const TrainingLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const StepModel model(problem);
  TrainingSearch search(model, limits);
  TrainingOutcome outcome;
  bool saw_all = false;
  if (is_small(problem)) {
    saw_all = search_all_plans(search);
  } else {
    search_mixed_stages(search);
    search_sized_stages(search);
    search_chained_stages(search);
    improve_training_plan(search);
  }
  TrainingAnswer& answer = outcome.answer;
  answer.plan = search.best();
  answer.planner = saw_all ? "all-plans" : "families";
  if (answer.plan.stages.empty()) {
    outcome.proved_infeasible =
        saw_all || training_bound(model, kInfinity, answer.bound_method) == kInfinity;
  } else {
    answer.value = model.cost(answer.plan).value(problem.objective);
    // The time that the search has left, and at least a quarter of all.
    const double left = std::max(limits.seconds / 4, limits.seconds - seconds_since(begin));
    answer.lower_bound =
        training_bound(model, answer.value, answer.bound_method, {left, limits.stop});
    if (saw_all || answer.lower_bound >= answer.value * (1 - kOptimalGap)) {
      answer.lower_bound = answer.value;
      if (saw_all) answer.bound_method = "all plans";
    }
  }
  answer.seconds = seconds_since(begin);
  return outcome;
}

}  // namespace placewright
