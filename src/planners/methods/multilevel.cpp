#include "planners/methods/multilevel.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "coarsen/coarsening.h"
#include "coarsen/matching.h"
#include "evaluate/mean_transfer.h"
#include "evaluate/schedule.h"
#include "planners/methods/fill_rules.h"
#include "planners/random_numbers.h"

namespace placewright {
namespace {

constexpr std::size_t kFewOps = 300;  // of the coarsest problem, or fewer
constexpr std::size_t kRoundsOfSchedules = 2;
constexpr double kLeastShrinkage = 0.9;  // a round that leaves more of the ops is the last
constexpr double kHeaviest = 4;          // times the mean work of the coarsest ops
constexpr double kVariation = 0.5;       // of transfer costs from cycle to cycle
constexpr std::size_t kMostCycles = 24;
constexpr double kNear = 1.02;       // a plan further from the best is not improved
constexpr double kLevelShare = 0.1;  // of the time that is left, to plan or to improve a level
constexpr double kListShare = 0.5;   // of it, to plan a level for latency
constexpr std::uint64_t kShareOfSteps = 8;  // a level has one part of so many

class Multilevel {
 public:
  Multilevel(const Problem& problem, const LevelPlanners& planners, Control& control)
      : problem_(problem), planners_(planners), control_(control), random_(control.budget().seed) {}

  Answer run() {
    Answer answer = start();
    if (!answer.plan) return answer;
    best_ = std::move(answer.plan);
    bool goes_on = true;
    for (std::size_t i = 0; i < kMostCycles && goes_on && !control_.should_stop(1); ++i) {
      goes_on = cycle(i == 0 ? 0 : kVariation) || is_pipeline();
    }
    if (!is_pipeline()) take_better(best_, improved(problem_, *best_, control_.remaining()));
    answer.plan = std::move(best_);
    return answer;
  }

 private:
  [[nodiscard]] bool is_pipeline() const { return problem_.objective() == Objective::throughput; }

  Answer planned(const Problem& problem, double seconds) {
    Control part = control_.part("multilevel", seconds);
    return planners_.quick(problem, part);
  }

  // The plan given, or the better of an even fill at once and a quick plan in a while.
  Answer start() {
    Answer answer;
    if (control_.start != nullptr) {
      answer.plan = *control_.start;
      return answer;
    }
    Control part = control_.part("multilevel", control_.remaining());
    answer = fill_evenly(problem_, part);
    take_better(answer.plan, planned(problem_, control_.remaining()).plan);
    if (answer.plan) control_.report(*answer.plan, 0);
    return answer;
  }

  [[nodiscard]] const Problem& problem_of(std::size_t level) const {
    return level == 0 ? problem_ : levels_[level - 1]->coarse();
  }

  // Down to the coarsest level and up again. Whether that gave a better plan.
  bool cycle(double variation) {
    coarsen(variation);
    std::optional<Plan> plan;
    for (std::size_t level = levels_.size(); level > 0; --level) {
      if (!control_.should_stop(1)) improve(plan, problem_of(level));
      if (plan) plan = levels_[level - 1]->expand(*plan);
    }
    const double before = best_->value;
    take_better(best_, std::move(plan));
    if (best_->value < before) control_.report(*best_, 0);
    return best_->value < before;
  }

  // What is made afresh of this level, or the plan of the coarser one, and better.
  void improve(std::optional<Plan>& plan, const Problem& problem) {
    const double share = is_pipeline() ? kLevelShare : kListShare;
    take_better(plan, planned(problem, share * control_.remaining()).plan);
    if (!plan || plan->value > kNear * best_->value) return;
    take_better(plan, improved(problem, *plan, kLevelShare * control_.remaining()));
  }

  // What improves pipelines knows replicas only where devices share.
  void take_better(std::optional<Plan>& plan, std::optional<Plan> other) const {
    const auto has_replicas = [](const Stage& stage) { return stage.devices.size() > 1; };
    if (!other) return;
    if (!problem_.has_sharing() && std::ranges::any_of(other->stages, has_replicas)) return;
    if (!plan || other->value < plan->value) plan = std::move(other);
  }

  void coarsen(double variation) {
    levels_.clear();
    double total = 0;
    for (const OpId op : problem_.ops()) total += mean_time(problem_, op);
    const double heaviest = kHeaviest * total / static_cast<double>(kFewOps);
    const std::size_t rounds = is_pipeline() ? problem_.op_count() : kRoundsOfSchedules;
    Placement placement = is_pipeline() ? Placement(problem_.op_count()) : best_->placement;
    while (levels_.size() < rounds && !control_.should_stop(1)) {
      const Problem& fine = problem_of(levels_.size());
      if (fine.op_count() <= kFewOps) return;
      auto coarser = std::make_unique<Coarsening>(
          fine, matched(fine, costs_of(fine, heaviest, variation), placement));
      const Problem& coarse = coarser->coarse();
      if (static_cast<double>(coarse.op_count()) >
          kLeastShrinkage * static_cast<double>(fine.op_count())) {
        return;
      }
      Placement carried(coarse.op_count());
      for (const OpId op : fine.ops()) carried[coarser->coarse_op(op)] = placement[op];
      placement = std::move(carried);
      levels_.push_back(std::move(coarser));
    }
  }

  MatchingCosts costs_of(const Problem& problem, double heaviest, double variation) {
    MatchingCosts costs{.work = Table<OpId, double>(problem.op_count()),
                        .transfer = mean_transfer_times(problem),
                        .heaviest = heaviest};
    for (const OpId op : problem.ops()) costs.work[op] = mean_time(problem, op);
    for (double& cost : costs.transfer) cost *= 1 + variation * (2 * random_.unit() - 1);
    return costs;
  }

  std::optional<Plan> improved(const Problem& problem, const Plan& plan, double seconds) {
    Budget budget = control_.budget();
    budget.seconds = seconds;
    if (budget.steps < Budget{}.steps) {
      budget.steps = std::max<std::uint64_t>(1, budget.steps / kShareOfSteps);
      (void)control_.should_stop(budget.steps);
    }
    Control part("multilevel", budget, control_.interruption());
    return planners_.improved(problem, plan, part);
  }

  const Problem& problem_;
  const LevelPlanners& planners_;
  Control& control_;
  RandomNumbers random_;
  std::optional<Plan> best_;
  std::vector<std::unique_ptr<Coarsening>> levels_;  // from the finest
};

}  // namespace

bool worth_coarsening(const Problem& problem) {
  constexpr std::size_t kManyOps = 1000;
  return !problem.has_sharing() || problem.op_count() >= kManyOps;
}

Answer multilevel_plan(const Problem& problem, const LevelPlanners& planners, Control& control) {
  return Multilevel(problem, planners, control).run();
}

}  // namespace placewright
