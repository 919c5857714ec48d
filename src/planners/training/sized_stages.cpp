// Plans whose stages have as many groups as their work needs, all of one pool and degree. For a
// time T of the busiest replica a group takes floor(1 + T / slot) micro-batches, so a stage of
// given layers, type and depth needs a known number of groups. A program from the last stage to the
// first, over (depth, first layer), minimises the GPUs at prices of the pools; T is halved towards
// the least one whose stages fit the cluster. Free GPUs then join the busiest stage, also those of
// other pools. Prices and limits of the all-reduce come from small grids. Time: 12 halvings of
// stages x layers^2 x types for each micro-batch size, price and limit.

#include <algorithm>
#include <cmath>

#include "planners/training/training_search.h"

namespace placewright {
namespace {

constexpr std::size_t kMostStages = 16;
constexpr int kHalvings = 12;

class SizedStages {
 public:
  SizedStages(TrainingSearch& search, int micro_batch)
      : search_(search),
        problem_(search.problem()),
        types_(search.group_types(micro_batch)),
        layers_(problem_.layers()),
        micro_batch_(micro_batch),
        micro_batches_(problem_.batch / micro_batch),
        stages_(std::min(kMostStages, layers_)) {
    fill_tables();
  }

  void run() {
    std::vector<double> prices(problem_.pools.size(), 1);
    choose_price(0, prices);
  }

 private:
  struct Entry {
    double slot = kInfinity;
    double exchange_of_two = 0;
    double update = 0;
    int deepest = 0;  // depth up to which any number of micro-batches fits
    int most = 0;     // micro-batches that fit behind that depth
  };
  struct Best {
    double cost = kInfinity;
    std::size_t last = 0;
    std::size_t type = 0;
    int count = 0;
  };

  Entry& entry(std::size_t t, std::size_t first, std::size_t last) {
    return entries_[(t * (layers_ + 1) + first) * (layers_ + 1) + last];
  }

  void fill_tables() {
    entries_.resize(types_.size() * (layers_ + 1) * (layers_ + 1));
    for (std::size_t t = 0; t < types_.size(); ++t) {
      for (std::size_t first = 0; first < layers_; ++first) {
        for (std::size_t last = first + 1; last <= layers_; ++last) {
          entry(t, first, last) = make_entry(types_[t], first, last);
          if (entry(t, first, last).most == 0) break;
        }
      }
    }
  }

  [[nodiscard]] Entry make_entry(const GroupType& type, std::size_t first, std::size_t last) const {
    const StepModel& model = search_.model();
    const std::size_t kind = problem_.pools[type.pool].kind;
    const auto exchange = [&](std::size_t boundary) {
      return model.exchange(type.pool, type.pool, type.degree, micro_batch_, boundary);
    };
    Entry made;
    while (made.most < static_cast<int>(stages_) &&
           model.memory(type.degree, micro_batch_, first, last, made.most + 1) <=
               problem_.kinds[kind].memory) {
      ++made.most;
    }
    made.deepest = made.most;
    made.slot = model.compute(kind, type.degree, micro_batch_, first, last) +
                (first > 0 ? exchange(first) : 0) + (last < layers_ ? exchange(last) : 0);
    made.update = model.update(kind, type.degree, micro_batch_, first, last);
    const StageReplica group{type.pool, type.degree, 1};
    made.exchange_of_two = model.all_reduce({first, last, {group, group}});
    return made;
  }

  // Each pool at each of a few prices; the last pool's is 1.
  void choose_price(std::size_t p, std::vector<double>& prices) {
    if (search_.should_stop()) return;
    if (p + 1 >= prices.size()) {
      for (const double limit : {1.0, 0.1, 0.04}) shorten(prices, limit);
      return;
    }
    const bool many = prices.size() > 2;
    for (const double price :
         many ? std::vector{0.2, 1.0, 5.0} : std::vector{0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0}) {
      prices[p] = price;
      choose_price(p + 1, prices);
    }
  }

  // `limit`: of the all-reduce, as a part of the best step known.
  void shorten(const std::vector<double>& prices, double limit) {
    const double known =
        search_.best().stages.empty() ? kInfinity : search_.model().cost(search_.best()).seconds;
    double late = known < kInfinity ? known : slowest();
    double early = 0;
    bool found = false;
    for (int i = 0; i < kHalvings; ++i) {
      if (search_.should_stop()) return;
      const double middle = found || i > 0 ? (early + late) / 2 : late;
      TrainingPlan plan = plan_for(middle, prices, limit * known);
      if (plan.stages.empty()) {
        if (i == 0) return;
        early = middle;
        continue;
      }
      found = true;
      late = middle;
      offer_with_free_gpus(std::move(plan));
    }
  }

  // All micro-batches through one group, layer after layer.
  [[nodiscard]] double slowest() {
    double sum = 0;
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      double most = 0;
      for (std::size_t t = 0; t < types_.size(); ++t) {
        const Entry& one = entry(t, layer, layer + 1);
        if (one.most > 0 && one.slot < kInfinity) most = std::max(most, one.slot);
      }
      sum += most;
    }
    return sum * micro_batches_;
  }

  [[nodiscard]] Best choice(std::size_t t, const Entry& made, int depth, double steady,
                            double price, double tail) const {
    const NodePool& pool = problem_.pools[types_[t].pool];
    if (made.most == 0 || made.slot == kInfinity) return {};
    const double most = depth <= made.deepest ? micro_batches_ : made.most;
    const double taken = std::min(most, made.slot > 0 ? std::floor(1 + steady / made.slot) : most);
    const double count = std::ceil(micro_batches_ / taken);
    const double gpus = count * types_[t].degree;
    if (gpus > static_cast<double>(pool.gpus) * pool.count) return {};
    const double ring = count > 1 ? made.exchange_of_two * 2 * (count - 1) / count : 0;
    if (ring + made.update > tail) return {};
    return {price * gpus, 0, t, static_cast<int>(count)};
  }

  // Empty if the stages do not fit the cluster at these prices.
  TrainingPlan plan_for(double steady, const std::vector<double>& prices, double tail) {
    std::vector best(stages_ + 1, std::vector<Best>(layers_ + 1));
    best[0][layers_].cost = 0;
    for (std::size_t depth = 1; depth <= stages_; ++depth) {
      for (std::size_t first = 0; first < layers_; ++first) {
        for (std::size_t last = first + 1; last <= layers_; ++last) {
          const double before = best[depth - 1][last].cost;
          if (before == kInfinity) continue;
          for (std::size_t t = 0; t < types_.size(); ++t) {
            Best one = choice(t, entry(t, first, last), static_cast<int>(depth), steady,
                              prices[types_[t].pool], tail);
            one.cost += before;
            one.last = last;
            if (one.cost < best[depth][first].cost) best[depth][first] = one;
          }
        }
      }
    }
    std::size_t depth = 0;
    for (std::size_t d = 1; d <= stages_; ++d) {
      if (best[d][0].cost < best[depth][0].cost) depth = d;
    }
    TrainingPlan plan{micro_batch_, {}};
    if (best[depth][0].cost == kInfinity) return plan;
    for (std::size_t first = 0; first < layers_; first = best[depth--][first].last) {
      const Best& one = best[depth][first];
      const GroupType& type = types_[one.type];
      plan.stages.push_back({first, one.last,
                             std::vector<StageReplica>(static_cast<std::size_t>(one.count),
                                                       {type.pool, type.degree, 1})});
    }
    if (!search_.fits_nodes(plan)) plan.stages.clear();
    return plan;
  }

  // Each free group joins the stage whose replicas are the busiest, while that helps.
  void offer_with_free_gpus(TrainingPlan plan) {
    double value = search_.offer(plan);
    for (bool joined = true; joined && !search_.should_stop();) {
      joined = false;
      TrainingPlan best;
      for (TrainingStage& stage : plan.stages) {
        if (stage.replicas.size() >= static_cast<std::size_t>(micro_batches_)) continue;
        for (const GroupType& type : types_) {
          stage.replicas.push_back({type.pool, type.degree, 1});
          if (search_.fits_nodes(plan)) {
            const double longer = search_.offer(plan);
            if (longer < value * (1 - kLeastGain)) {
              value = longer;
              best = plan;
              joined = true;
            }
          }
          stage.replicas.pop_back();
        }
      }
      if (joined) plan = std::move(best);
    }
  }

  static constexpr double kLeastGain = 1e-3;
  TrainingSearch& search_;
  const TrainingProblem& problem_;
  std::vector<GroupType> types_;
  std::size_t layers_;
  int micro_batch_;
  int micro_batches_;
  std::size_t stages_;
  std::vector<Entry> entries_;
};

}  // namespace

void search_sized_stages(TrainingSearch& search) {
  for (const int size : search.micro_batch_sizes()) {
    if (search.should_stop()) return;
    SizedStages(search, size).run();
  }
}

}  // namespace placewright
