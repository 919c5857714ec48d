// Plans in which every stage has the same groups: of each pool as many, of one degree, as it has
// for each stage. For S stages the cuts come from a dynamic program over prefixes that minimises
// the largest slot of the slowest group: O(S layers^2) for each choice of degrees.

#include <algorithm>

#include "planners/training/training_search.h"

namespace placewright {
namespace {

// The groups of every stage.
using Mixture = std::vector<StageReplica>;

// All ways to take one degree, or none, from each pool for each of `stages` stages; and of each way
// with all, a half, a quarter, … of the groups.
class Mixtures {
 public:
  Mixtures(const TrainingSearch& search, const std::vector<GroupType>& types, int stages,
           int micro_batches)
      : search_(search), types_(types), stages_(stages), micro_batches_(micro_batches) {}

  std::vector<Mixture> all() {
    add_pool(0, {});
    return std::move(found_);
  }

 private:
  void add_pool(std::size_t p, const Mixture& chosen) {
    if (p == search_.problem().pools.size()) {
      if (!chosen.empty() && chosen.size() <= static_cast<std::size_t>(micro_batches_)) {
        found_.push_back(chosen);
      }
      return;
    }
    add_pool(p + 1, chosen);
    const NodePool& pool = search_.problem().pools[p];
    for (const GroupType& type : types_) {
      if (type.pool != p) continue;
      const int most = pool.count * (pool.gpus / type.degree) / stages_;
      for (int count = std::min(most, micro_batches_); count > 0; count /= 2) {
        Mixture longer = chosen;
        longer.insert(longer.end(), static_cast<std::size_t>(count), {p, type.degree, 1});
        add_pool(p + 1, longer);
      }
    }
  }

  const TrainingSearch& search_;
  const std::vector<GroupType>& types_;
  int stages_;
  int micro_batches_;
  std::vector<Mixture> found_;
};

// The cuts into `stages` stages with the least largest compute within memory; empty if none fits.
// The stage that ends at layer i with d stages from it on is best(d, i).
class Balance {
 public:
  Balance(const StepModel& model, const Mixture& mixture, int micro_batch)
      : model_(model), micro_batch_(micro_batch) {
    for (const StageReplica& group : mixture) {
      const auto same = [&](const StageReplica& other) {
        return other.pool == group.pool && other.degree == group.degree;
      };
      if (std::ranges::none_of(groups_, same)) groups_.push_back(group);
    }
  }

  std::vector<std::size_t> ends(int stages) {
    const std::size_t layers = model_.problem().layers();
    const auto count = static_cast<std::size_t>(stages);
    std::vector best(count + 1, std::vector<double>(layers + 1, kInfinity));
    std::vector from(count + 1, std::vector<std::size_t>(layers + 1, 0));
    best[0][0] = 0;
    for (std::size_t s = 1; s <= count; ++s) {
      const int depth = static_cast<int>(count - s + 1);
      for (std::size_t last = s; last + (count - s) <= layers; ++last) {
        for (std::size_t first = s - 1; first < last; ++first) {
          const double worst = std::max(best[s - 1][first], cost(first, last, depth));
          if (worst < best[s][last]) {
            best[s][last] = worst;
            from[s][last] = first;
          }
        }
      }
    }
    std::vector<std::size_t> ends;
    if (best[count][layers] == kInfinity) return ends;
    for (std::size_t s = count, last = layers; s > 0; last = from[s][last], --s) {
      ends.insert(ends.begin(), last);
    }
    return ends;
  }

 private:
  // Seconds of a micro-batch when all groups share the work; infinite where one has no room.
  double cost(std::size_t first, std::size_t last, int depth) const {
    double rate = 0;
    for (const StageReplica& group : groups_) {
      const GpuKind& kind = model_.problem().kinds[model_.problem().pools[group.pool].kind];
      const double bytes = model_.memory(group.degree, micro_batch_, first, last, depth);
      if (bytes > kind.memory) continue;  // it may take fewer micro-batches, or leave the plan
      rate += 1 / model_.compute(model_.problem().pools[group.pool].kind, group.degree,
                                 micro_batch_, first, last);
    }
    return rate > 0 ? 1 / rate : kInfinity;
  }

  const StepModel& model_;
  int micro_batch_;
  Mixture groups_;
};

constexpr int kMostStages = 32;

}  // namespace

void search_mixed_stages(TrainingSearch& search) {
  const int layers = static_cast<int>(search.problem().layers());
  for (int stages = 1; stages <= std::min(layers, kMostStages); ++stages) {
    for (const int size : search.micro_batch_sizes()) {
      const std::vector<GroupType> types = search.group_types(size);
      const int micro_batches = search.problem().batch / size;
      for (const Mixture& mixture : Mixtures(search, types, stages, micro_batches).all()) {
        if (search.should_stop()) return;
        TrainingPlan plan{size, {}};
        std::size_t first = 0;
        for (const std::size_t last : Balance(search.model(), mixture, size).ends(stages)) {
          plan.stages.push_back({first, last, mixture});
          first = last;
        }
        if (!plan.stages.empty()) (void)search.offer(std::move(plan));
      }
    }
  }
}

}  // namespace placewright
