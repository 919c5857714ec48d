// Plans in which every stage has the same number of replicas, all of one pool and degree; stages
// may differ in both. For each micro-batch size and number of replicas a dynamic program goes from
// the last stage to the first over (stages so far, first layer, GPUs used of each pool, pool of the
// first stage). A state keeps the few best (sum, maximum) pairs of slots by sum + (m - 1) maximum +
// what reduction and update add; memory and sends are exact, since the depth of a stage is known
// when it is added.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "planners/training/training_search.h"

namespace placewright {
namespace {

constexpr std::size_t kLabels = 3;           // of a state
constexpr std::size_t kMostStates = 20'000;  // of a number of stages; more are thinned out
constexpr std::size_t kMostStages = 16;

struct Label {
  double sum = 0;
  double largest = 0;
  double tail = 0;  // the largest update plus all-reduce of a stage
  std::size_t first = 0;
  std::size_t type = 0;
  std::vector<int> used;              // GPUs of each pool
  std::vector<TrainingStage> stages;  // from the last one backwards, without replicas
  std::vector<std::size_t> types;     // of these stages
};

class Chain {
 public:
  Chain(TrainingSearch& search, int micro_batch, int replicas)
      : search_(search),
        types_(search.group_types(micro_batch)),
        micro_batch_(micro_batch),
        replicas_(replicas),
        rounds_(std::max(0, (search.problem().batch / micro_batch + replicas - 1) / replicas - 1)) {
  }

  void run() {
    Label start;
    start.first = search_.problem().layers();
    start.used.assign(search_.problem().pools.size(), 0);
    std::vector<Label> labels = {start};
    for (int depth = 1; depth <= static_cast<int>(kMostStages) && !labels.empty(); ++depth) {
      if (search_.should_stop()) return;
      States next;
      for (const Label& label : labels) extend(label, depth, next);
      labels = thinned(std::move(next));
    }
  }

 private:
  using States = std::map<std::pair<std::pair<std::size_t, std::size_t>, std::vector<int>>,
                          std::vector<Label>>;

  [[nodiscard]] double merit(const Label& label) const {
    return label.sum + rounds_ * label.largest + label.tail;
  }

  void extend(const Label& label, int depth, States& next) {
    for (std::size_t t = 0; t < types_.size(); ++t) {
      const NodePool& pool = search_.problem().pools[types_[t].pool];
      const int gpus = label.used[types_[t].pool] + replicas_ * types_[t].degree;
      if (gpus > pool.gpus * pool.count) continue;
      for (std::size_t first = label.first; first-- > 0;) {
        if (!add(label, t, first, depth, next)) break;
      }
    }
  }

  // False if an even longer stage cannot fit or be useful.
  bool add(const Label& label, std::size_t t, std::size_t first, int depth, States& next) {
    const StepModel& model = search_.model();
    const GroupType& type = types_[t];
    const std::size_t kind = search_.problem().pools[type.pool].kind;
    const int in_flight = std::min(depth, rounds_ + 1);
    if (model.memory(type.degree, micro_batch_, first, label.first, in_flight) >
        search_.problem().kinds[kind].memory) {
      return false;
    }
    double slot = model.compute(kind, type.degree, micro_batch_, first, label.first);
    if (!label.stages.empty()) {
      const std::size_t neighbour = types_[label.types.back()].pool;
      slot += model.exchange(type.pool, neighbour, type.degree, micro_batch_, label.first);
    }
    if (first > 0) {  // what comes before is not known yet: as if it were of this pool
      slot += model.exchange(type.pool, type.pool, type.degree, micro_batch_, first);
    }
    const double tail = all_reduce(type, first, label.first) +
                        model.update(kind, type.degree, micro_batch_, first, label.first);
    const double sum = label.sum + slot;
    const double largest = std::max(label.largest, slot);
    if (time_counts() &&
        sum + rounds_ * largest + std::max(label.tail, tail) >= kWorthPricing * search_.value()) {
      return false;
    }
    Label longer = label;
    longer.sum = sum;
    longer.largest = largest;
    longer.tail = std::max(label.tail, tail);
    longer.first = first;
    longer.used[type.pool] += replicas_ * type.degree;
    longer.stages.push_back({first, label.first, {}});
    longer.types.push_back(t);
    if (first == 0) {
      offer(longer);
    } else {
      keep(std::move(longer), t, next);
    }
    return true;
  }

  // Of all replicas from that of two: the ring has 2 (n - 1) / n rounds.
  [[nodiscard]] double all_reduce(const GroupType& type, std::size_t first,
                                  std::size_t last) const {
    if (replicas_ < 2) return 0;
    const StageReplica group{type.pool, type.degree, 1};
    return search_.model().all_reduce({first, last, {group, group}}) * 2 * (replicas_ - 1) /
           replicas_;
  }

  [[nodiscard]] bool time_counts() const {
    return search_.problem().objective == TrainingObjective::step_time;
  }

  void keep(Label label, std::size_t t, States& next) const {
    std::vector<Label>& labels = next[{{label.first, t}, label.used}];
    for (const Label& other : labels) {
      if (other.sum <= label.sum && other.largest <= label.largest && other.tail <= label.tail) {
        return;
      }
    }
    labels.push_back(std::move(label));
    std::ranges::sort(labels, {}, [&](const Label& one) { return merit(one); });
    if (labels.size() > kLabels) labels.pop_back();
  }

  // Those with the least seconds for each layer that is done.
  [[nodiscard]] std::vector<Label> thinned(States states) const {
    std::vector<Label> labels;
    for (auto& [key, kept] : states) {
      for (Label& label : kept) labels.push_back(std::move(label));
    }
    if (labels.size() > kMostStates) {
      const double layers = static_cast<double>(search_.problem().layers());
      std::ranges::nth_element(labels, labels.begin() + kMostStates, {}, [&](const Label& label) {
        return merit(label) / (layers - static_cast<double>(label.first));
      });
      labels.resize(kMostStates);
    }
    return labels;
  }

  void offer(const Label& label) {
    TrainingPlan plan{micro_batch_, {}};
    for (std::size_t s = label.stages.size(); s-- > 0;) {
      TrainingStage stage = label.stages[s];
      const GroupType& type = types_[label.types[s]];
      stage.replicas.assign(static_cast<std::size_t>(replicas_), {type.pool, type.degree, 1});
      plan.stages.push_back(std::move(stage));
    }
    if (search_.fits_nodes(plan)) (void)search_.offer(std::move(plan));
  }

  static constexpr double kWorthPricing = 1.02;
  TrainingSearch& search_;
  std::vector<GroupType> types_;
  int micro_batch_;
  int replicas_;
  int rounds_;
};

}  // namespace

void search_chained_stages(TrainingSearch& search) {
  // All numbers that divide the groups of a pool into stages. Many replicas first: these are the
  // small programs.
  std::set<int, std::greater<>> numbers;
  for (const int size : search.micro_batch_sizes()) {
    for (const GroupType& type : search.group_types(size)) {
      const NodePool& pool = search.problem().pools[type.pool];
      const int groups = pool.count * (pool.gpus / type.degree);
      for (int stages = 1; stages <= groups; ++stages) numbers.insert(groups / stages);
    }
  }
  for (const int replicas : numbers) {
    for (const int size : search.micro_batch_sizes()) {
      if (search.should_stop()) return;
      if (replicas <= search.problem().batch / size) Chain(search, size, replicas).run();
    }
  }
}

}  // namespace placewright
