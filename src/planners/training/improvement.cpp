// Local search from the best plan: a boundary moves by some layers, a group moves to another stage,
// is left out, added, or changes its pool or degree, a stage is split or joined with the next one,
// and the micro-batch size changes. First improvement, until no move helps or the time is over.

#include <algorithm>

#include "planners/training/training_search.h"

namespace placewright {
namespace {

class Improvement {
 public:
  explicit Improvement(TrainingSearch& search) : search_(search) {}

  void run() {
    while (!search_.best().stages.empty() && !search_.should_stop()) {
      if (!boundaries() && !groups() && !stages() && !micro_batches()) return;
    }
  }

 private:
  // Whether the plan is better than the best, which it then is.
  bool try_plan(TrainingPlan plan) {
    const double before = search_.value();
    for (TrainingStage& stage : plan.stages) {
      const bool too_many = stage.replicas.size() >
                            static_cast<std::size_t>(search_.problem().batch / plan.micro_batch);
      if (stage.replicas.empty() || too_many || stage.last <= stage.first) return false;
      // The ring passes each pool once.
      std::ranges::stable_sort(stage.replicas, {}, &StageReplica::pool);
    }
    if (!search_.fits_nodes(plan)) return false;
    return search_.offer(std::move(plan)) < before * (1 - kLeastGain);
  }

  bool boundaries() {
    const TrainingPlan start = search_.best();
    for (std::size_t s = 0; s + 1 < start.stages.size(); ++s) {
      for (const int by : {1, -1, 2, -2, 4, -4}) {
        if (search_.should_stop()) return false;
        TrainingPlan plan = start;
        const auto moved = static_cast<long long>(plan.stages[s].last) + by;
        if (moved <= static_cast<long long>(plan.stages[s].first) ||
            moved >= static_cast<long long>(plan.stages[s + 1].last)) {
          continue;
        }
        plan.stages[s].last = plan.stages[s + 1].first = static_cast<std::size_t>(moved);
        if (try_plan(std::move(plan))) return true;
      }
    }
    return false;
  }

  // Of equal groups of a stage one stands for all.
  static bool is_repeated(const TrainingStage& stage, std::size_t r) {
    if (r == 0) return false;
    const StageReplica& one = stage.replicas[r];
    const StageReplica& before = stage.replicas[r - 1];
    return one.pool == before.pool && one.degree == before.degree;
  }

  bool groups() {
    const TrainingPlan start = search_.best();
    const std::vector<GroupType> types = search_.group_types(start.micro_batch);
    for (std::size_t s = 0; s < start.stages.size(); ++s) {
      for (const GroupType& type : types) {
        if (search_.should_stop()) return false;
        TrainingPlan plan = start;
        plan.stages[s].replicas.push_back({type.pool, type.degree, 1});
        if (try_plan(std::move(plan))) return true;
      }
      for (std::size_t r = 0; r < start.stages[s].replicas.size(); ++r) {
        if (is_repeated(start.stages[s], r)) continue;
        if (search_.should_stop()) return false;
        if (one_group(start, types, s, r)) return true;
      }
    }
    return false;
  }

  bool one_group(const TrainingPlan& start, const std::vector<GroupType>& types, std::size_t s,
                 std::size_t r) {
    TrainingPlan without = start;
    const StageReplica group = start.stages[s].replicas[r];
    without.stages[s].replicas.erase(without.stages[s].replicas.begin() +
                                     static_cast<std::ptrdiff_t>(r));
    if (try_plan(without)) return true;
    for (std::size_t other = 0; other < start.stages.size(); ++other) {
      if (other == s) continue;
      TrainingPlan plan = without;
      plan.stages[other].replicas.push_back(group);
      if (try_plan(std::move(plan))) return true;
    }
    for (const GroupType& type : types) {
      TrainingPlan plan = without;
      plan.stages[s].replicas.push_back({type.pool, type.degree, 1});
      if (try_plan(std::move(plan))) return true;
    }
    return false;
  }

  bool stages() {
    const TrainingPlan start = search_.best();
    for (std::size_t s = 0; s < start.stages.size(); ++s) {
      if (search_.should_stop()) return false;
      if (s + 1 < start.stages.size() && try_plan(joined(start, s))) return true;
      if (start.stages[s].replicas.size() > 1 && start.stages[s].last > start.stages[s].first + 1 &&
          try_plan(split(start, s))) {
        return true;
      }
    }
    return false;
  }

  static TrainingPlan joined(TrainingPlan plan, std::size_t s) {
    TrainingStage& stage = plan.stages[s];
    const TrainingStage& next = plan.stages[s + 1];
    stage.last = next.last;
    stage.replicas.insert(stage.replicas.end(), next.replicas.begin(), next.replicas.end());
    plan.stages.erase(plan.stages.begin() + static_cast<std::ptrdiff_t>(s) + 1);
    return plan;
  }

  // Halves of the layers, every other group.
  static TrainingPlan split(TrainingPlan plan, std::size_t s) {
    const TrainingStage whole = plan.stages[s];
    TrainingStage first{whole.first, (whole.first + whole.last) / 2, {}};
    TrainingStage second{first.last, whole.last, {}};
    for (std::size_t r = 0; r < whole.replicas.size(); ++r) {
      (r % 2 == 0 ? first : second).replicas.push_back(whole.replicas[r]);
    }
    plan.stages[s] = second;
    plan.stages.insert(plan.stages.begin() + static_cast<std::ptrdiff_t>(s), first);
    return plan;
  }

  bool micro_batches() {
    const TrainingPlan start = search_.best();
    for (const int size : search_.micro_batch_sizes()) {
      TrainingPlan plan = start;
      plan.micro_batch = size;
      if (size != start.micro_batch && try_plan(std::move(plan))) return true;
    }
    return false;
  }

  static constexpr double kLeastGain = 1e-9;
  TrainingSearch& search_;
};

}  // namespace

void improve_training_plan(TrainingSearch& search) {
  Improvement(search).run();
}

}  // namespace placewright
