// Branch and bound over all training plans, stage by stage. A partial plan costs at least the
// compute of its stages in a row plus what its busiest stage takes when only compute counts.

#include <algorithm>

#include "planners/training/training_search.h"

namespace placewright {
namespace {

class AllPlans {
 public:
  explicit AllPlans(TrainingSearch& search) : search_(search) {}

  bool run() {
    for (const int size : search_.micro_batch_sizes()) {
      plan_.micro_batch = size;
      types_ = search_.group_types(size);
      micro_batches_ = search_.problem().batch / size;
      for (stages_ = 1; stages_ <= search_.problem().layers(); ++stages_) add_stage(0, 0);
      if (search_.should_stop()) return false;
    }
    return !search_.should_stop();
  }

 private:
  // Replicas in every order: who exchanges with whom, and the ring of the all-reduce, depend on it.
  // On one pool they do not.
  [[nodiscard]] bool order_counts() const { return search_.problem().pools.size() > 1; }

  void add_stage(std::size_t first, double fill) {
    const std::size_t layers = search_.problem().layers();
    const std::size_t index = plan_.stages.size();
    if (index == stages_) {
      (void)search_.offer(plan_);
      return;
    }
    const std::size_t left = stages_ - index - 1;
    const std::size_t earliest = left == 0 ? layers : first + 1;
    for (std::size_t last = earliest; last + left <= layers; ++last) {
      plan_.stages.push_back({first, last, {}});
      add_replica(0, fill, 0, 0);
      plan_.stages.pop_back();
    }
  }

  // `rate`: micro-batches per second of the stage so far; `slowest`: its longest compute.
  void add_replica(std::size_t type, double fill, double rate, double slowest) {
    if (search_.should_stop()) return;
    const std::size_t count = plan_.stages.back().replicas.size();
    if (count > 0) {
      const double busiest = (micro_batches_ - static_cast<double>(count)) / rate;
      if (!too_dear(fill + slowest + busiest)) {
        add_stage(plan_.stages.back().last, fill + slowest);
      }
    }
    if (count == static_cast<std::size_t>(micro_batches_)) return;
    for (std::size_t t = order_counts() ? 0 : type; t < types_.size(); ++t) {
      const GroupType& group = types_[t];
      const double compute = search_.model().compute(
          search_.problem().pools[group.pool].kind, group.degree, plan_.micro_batch,
          plan_.stages.back().first, plan_.stages.back().last);
      plan_.stages.back().replicas.push_back({group.pool, group.degree, 1});
      if (search_.fits_nodes(plan_) && !too_dear(fill + std::max(slowest, compute))) {
        add_replica(t, fill, rate + (compute > 0 ? 1 / compute : kInfinity),
                    std::max(slowest, compute));
      }
      plan_.stages.back().replicas.pop_back();
    }
  }

  // Further groups only raise the price of an hour.
  [[nodiscard]] bool too_dear(double seconds) const {
    return search_.model().value_of(seconds, plan_) >= search_.value();
  }

  TrainingSearch& search_;
  TrainingPlan plan_;
  std::vector<GroupType> types_;
  int micro_batches_ = 0;
  std::size_t stages_ = 0;
};

}  // namespace

bool search_all_plans(TrainingSearch& search) {
  return AllPlans(search).run();
}

}  // namespace placewright
