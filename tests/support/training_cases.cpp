#include "support/training_cases.h"

#include <algorithm>
#include <random>
#include <set>

#include "verify/training.h"

namespace placewright::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : generator_(seed) {}
  double number(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(generator_);
  }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    const std::size_t index =
        std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(generator_);
    return *(values.begin() + index);
  }
  std::vector<double> numbers(std::size_t count, double most) {
    std::vector<double> values(count);
    for (double& value : values) value = number(0, most);
    return values;
  }

 private:
  std::mt19937_64 generator_;
};

class Enumeration {
 public:
  explicit Enumeration(const TrainingProblem& problem) : problem_(problem) {}

  double best() {
    std::set<int> sizes;
    for (const GpuKind& kind : problem_.kinds) {
      for (const LayerTimes& entry : kind.times) {
        if (problem_.batch % entry.micro_batch == 0) sizes.insert(entry.micro_batch);
      }
    }
    for (const int size : sizes) {
      plan_.micro_batch = size;
      next_stage(0);
    }
    return best_;
  }

 private:
  int used(std::size_t pool) const {
    int gpus = 0;
    for (const TrainingStage& stage : plan_.stages) {
      for (const StageReplica& replica : stage.replicas) {
        if (replica.pool == pool) gpus += replica.degree;
      }
    }
    return gpus;
  }

  void next_stage(std::size_t first) {
    if (first == problem_.layers()) {
      const TrainingVerdict verdict = verify_training(problem_, plan_);
      if (!verdict.violations.empty()) return;
      const bool time = problem_.objective == TrainingObjective::step_time;
      best_ = std::min(best_, time ? verdict.seconds : verdict.price);
      return;
    }
    for (std::size_t last = first + 1; last <= problem_.layers(); ++last) {
      plan_.stages.push_back({first, last, {}});
      next_replica(problem_.batch / plan_.micro_batch);
      plan_.stages.pop_back();
    }
  }

  void next_replica(int left) {
    if (left == 0) {
      next_stage(std::size_t{plan_.stages.back().last});
      return;
    }
    for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
      const NodePool& pool = problem_.pools[p];
      for (const LayerTimes& entry : problem_.kinds[pool.kind].times) {
        if (entry.micro_batch != plan_.micro_batch) continue;
        if (used(p) + entry.degree > pool.gpus * pool.count) continue;
        for (int share = 1; share <= left; ++share) {
          const StageReplica replica{p, entry.degree, share};
          if (is_out_of_order(replica)) continue;
          plan_.stages.back().replicas.push_back(replica);
          next_replica(left - share);
          plan_.stages.back().replicas.pop_back();
        }
      }
    }
  }

  bool is_out_of_order(const StageReplica& replica) const {
    const std::vector<StageReplica>& replicas = plan_.stages.back().replicas;
    if (problem_.pools.size() > 1 || replicas.empty()) return false;
    return std::pair(replica.degree, replica.micro_batches) <
           std::pair(replicas.back().degree, replicas.back().micro_batches);
  }

  const TrainingProblem& problem_;
  TrainingPlan plan_;
  double best_ = kInfinity;
};

}  // namespace

TrainingProblem random_training_problem(std::uint64_t seed, std::size_t layers, int gpus) {
  Dice dice(seed);
  TrainingProblem problem;
  problem.objective = dice.one_of({TrainingObjective::step_time, TrainingObjective::step_price});
  problem.batch = dice.one_of({2, 3, 4});
  problem.constants.hidden_launches = dice.one_of({0.0, 0.2});
  problem.constants.all_reduce_efficiency = dice.one_of({1.0, 0.4});
  problem.constants.framework = dice.one_of({0.0, 4e9});
  const int pools = gpus > 4 ? 1 : dice.one_of({1, 2});
  for (const int degree : {1, 2}) {
    problem.sizes.push_back({degree, dice.numbers(layers, 1e9 / degree), dice.numbers(layers, 4e9),
                             dice.numbers(layers, 2e9)});
  }
  for (int p = 0; p < pools; ++p) {
    const auto pool = static_cast<std::size_t>(p);
    GpuKind& kind = problem.kinds.emplace_back();
    kind.name = p == 0 ? "fast" : "slow";
    kind.memory = dice.one_of({15e9, 40e9, 1e12});
    kind.price = dice.one_of({1.0, 2.5});
    for (const int degree : {1, 2}) {
      for (const int size : {1, 2}) {
        if (dice.number(0, 1) < 0.2) continue;
        kind.times.push_back({degree, size, dice.numbers(layers, 1.0 * size / degree),
                              dice.numbers(layers, 2.0 * size / degree),
                              dice.numbers(layers, 0.3)});
      }
    }
    problem.pools.push_back({pool, "", gpus / pools > 1 ? 2 : 1, std::max(1, gpus / pools / 2)});
    for (std::size_t other = 0; other <= pool; ++other) {
      problem.links.push_back(
          {other, pool, dice.one_of({1, 2}), 0, dice.number(0, 0.3), dice.number(0.3, 3), 5e9});
    }
  }
  return problem;
}

double best_training_value(const TrainingProblem& problem) {
  return Enumeration(problem).best();
}

}  // namespace placewright::testing
