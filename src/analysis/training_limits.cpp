#include "analysis/training_limits.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace placewright {
namespace {

StageUse use_of(const TrainingProblem& problem, const TrainingPlan& plan, const StepCost& cost,
                std::size_t s) {
  const TrainingStage& stage = plan.stages[s];
  StageUse use{.stage = s, .spare_memory = kInfinity};
  double most = -1;
  for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
    const StageReplica& replica = stage.replicas[r];
    const ReplicaCost& one = cost.stages[s].replicas[r];
    use.spare_memory = std::min(
        use.spare_memory, problem.kinds[problem.pools[replica.pool].kind].memory - one.memory);
    const double busy = replica.micro_batches * one.slot();
    if (busy <= most) continue;
    most = busy;
    use.busiest = r;
    use.busy = replica.micro_batches * one.compute / cost.seconds;
    use.sends = replica.micro_batches * one.sends / cost.seconds;
  }
  return use;
}

double work_of(const TrainingPlan& plan, const StepCost& cost) {
  double work = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t r = 0; r < plan.stages[s].replicas.size(); ++r) {
      const StageReplica& replica = plan.stages[s].replicas[r];
      work += replica.degree * replica.micro_batches * cost.stages[s].replicas[r].compute;
    }
  }
  return work / (gpus_of(plan) * cost.seconds);
}

// The same plan on a cluster with one thing better.
class Gains {
 public:
  Gains(const TrainingProblem& problem, const TrainingPlan& plan, double seconds)
      : problem_(problem), plan_(plan), seconds_(seconds) {}

  void add(const std::string& what, const std::function<void(TrainingProblem&)>& change) {
    TrainingProblem changed = problem_;
    change(changed);
    const double seconds = StepModel(changed).cost(plan_).seconds;
    gains_.push_back({what, seconds, 1 - seconds / seconds_});
  }

  std::vector<TrainingGain> sorted() && {
    std::ranges::stable_sort(gains_, std::ranges::greater{}, &TrainingGain::gain);
    return std::move(gains_);
  }

 private:
  const TrainingProblem& problem_;
  const TrainingPlan& plan_;
  double seconds_;
  std::vector<TrainingGain> gains_;
};

void quicken(std::vector<double>& seconds, double factor) {
  for (double& one : seconds) one /= factor;
}

void quicken(PoolLink& link, double factor) {
  for (double* member : {&link.a, &link.b, &link.c, &link.best}) *member *= factor;
}

bool uses(const TrainingProblem& problem, const TrainingPlan& plan, std::size_t kind) {
  return std::ranges::any_of(plan.stages, [&](const TrainingStage& stage) {
    return std::ranges::any_of(stage.replicas, [&](const StageReplica& replica) {
      return problem.pools[replica.pool].kind == kind;
    });
  });
}

}  // namespace

TrainingExplanation explain_training_plan(const TrainingProblem& problem, const TrainingPlan& plan,
                                          double step) {
  TrainingExplanation explanation;
  explanation.cost = StepModel(problem).cost(plan);
  const StepCost& cost = explanation.cost;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    explanation.stages.push_back(use_of(problem, plan, cost, s));
    if (cost.stages[s].steady > cost.stages[explanation.busiest_stage].steady) {
      explanation.busiest_stage = s;
    }
  }
  explanation.work = work_of(plan, cost);
  Gains gains(problem, plan, cost.seconds);
  const double factor = 1 + step;
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    if (!uses(problem, plan, k)) continue;
    gains.add(fmt::format("{} {:.3g} % faster", problem.kinds[k].name, step * 100),
              [&](TrainingProblem& changed) {
                for (LayerTimes& times : changed.kinds[k].times) {
                  quicken(times.forward, factor);
                  quicken(times.backward, factor);
                  quicken(times.update, factor);
                }
              });
  }
  for (std::size_t from = 0; from < problem.pools.size(); ++from) {
    for (std::size_t to = from; to < problem.pools.size(); ++to) {
      const std::string between =
          from == to
              ? fmt::format("inside {}", pool_name(problem, from))
              : fmt::format("between {} and {}", pool_name(problem, from), pool_name(problem, to));
      gains.add(fmt::format("network {} {:.3g} % faster", between, step * 100),
                [&](TrainingProblem& changed) {
                  for (PoolLink& link : changed.links) {
                    const bool joins = (link.from == from && link.to == to) ||
                                       (link.from == to && link.to == from);
                    if (joins) quicken(link, factor);
                  }
                });
    }
  }
  explanation.gains = std::move(gains).sorted();
  return explanation;
}

}  // namespace placewright
