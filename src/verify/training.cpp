#include "verify/training.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "verify/findings.h"

namespace placewright {
namespace {

// Whether groups of these sizes, the largest first, go into so many nodes: tries every node for
// every group.
bool packs(const std::vector<int>& degrees, std::size_t next, std::vector<int>& free) {
  if (next == degrees.size()) return true;
  std::set<int> tried;  // nodes with equally many free GPUs are the same
  for (int& left : free) {
    if (left < degrees[next] || !tried.insert(left).second) continue;
    left -= degrees[next];
    const bool packed = packs(degrees, next + 1, free);
    left += degrees[next];
    if (packed) return true;
  }
  return false;
}

class TrainingChecker {
 public:
  TrainingChecker(const TrainingProblem& problem, const TrainingPlan& plan)
      : problem_(problem), plan_(plan) {}

  TrainingVerdict verdict() {
    check_form();
    if (!verdict_.violations.empty()) return verdict_;
    check_nodes();
    check_memory();
    add_up();
    return verdict_;
  }

 private:
  void complain(std::string sentence) { verdict_.violations.push_back(std::move(sentence)); }

  [[nodiscard]] const GpuKind& kind(const StageReplica& replica) const {
    return problem_.kinds[problem_.pools[replica.pool].kind];
  }

  void check_form() {
    if (plan_.stages.empty()) complain("the plan has no stage");
    std::size_t layer = 0;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const TrainingStage& stage = plan_.stages[s];
      if (stage.first != layer || stage.last <= stage.first || stage.last > problem_.layers()) {
        complain(fmt::format("stage {} has layers {} to {}; the next layer is {}", s + 1,
                             stage.first, stage.last, layer));
      }
      layer = stage.last;
      check_replicas(s);
    }
    if (layer != problem_.layers()) {
      complain(fmt::format("the stages end at layer {} of {}", layer, problem_.layers()));
    }
    if (plan_.micro_batch < 1 || problem_.batch % plan_.micro_batch != 0) {
      complain(fmt::format("{} samples are not whole micro-batches of {}", problem_.batch,
                           plan_.micro_batch));
    }
  }

  void check_replicas(std::size_t s) {
    const TrainingStage& stage = plan_.stages[s];
    long long samples = 0;
    for (const StageReplica& replica : stage.replicas) {
      if (replica.pool >= problem_.pools.size()) {
        complain(fmt::format("stage {} names a pool that is not there", s + 1));
        continue;
      }
      if (problem_.times_of(problem_.pools[replica.pool].kind, replica.degree, plan_.micro_batch) ==
          nullptr) {
        complain(fmt::format("stage {}: nothing was measured for {} x {} with micro-batches of {}",
                             s + 1, replica.degree, kind(replica).name, plan_.micro_batch));
      }
      if (replica.micro_batches < 1) {
        complain(fmt::format("stage {} has a replica without a micro-batch", s + 1));
      }
      samples += static_cast<long long>(replica.micro_batches) * plan_.micro_batch;
    }
    if (samples != problem_.batch) {
      complain(fmt::format("stage {} takes {} samples of {}", s + 1, samples, problem_.batch));
    }
  }

  void check_nodes() {
    for (std::size_t p = 0; p < problem_.pools.size(); ++p) {
      const NodePool& pool = problem_.pools[p];
      std::vector<int> degrees;
      long long gpus = 0;
      for (const TrainingStage& stage : plan_.stages) {
        for (const StageReplica& replica : stage.replicas) {
          if (replica.pool != p) continue;
          degrees.push_back(replica.degree);
          gpus += replica.degree;
        }
      }
      std::ranges::sort(degrees, std::ranges::greater{});
      std::vector<int> free(static_cast<std::size_t>(pool.count), pool.gpus);
      if (gpus > static_cast<long long>(pool.count) * pool.gpus || !packs(degrees, 0, free)) {
        complain(fmt::format("{} groups with {} GPUs do not go into {} nodes of {} x {}",
                             degrees.size(), gpus, pool.count, pool.gpus,
                             problem_.kinds[pool.kind].name));
      }
    }
  }

  double memory_of(std::size_t s, const StageReplica& replica) const {
    const TrainingStage& stage = plan_.stages[s];
    const LayerSizes& sizes = *problem_.sizes_of(replica.degree);
    const auto stages_left = static_cast<double>(plan_.stages.size() - s);
    const double in_flight = std::min<double>(stages_left, replica.micro_batches);
    double bytes =
        problem_.constants.framework + problem_.constants.framework_per_gpu * replica.degree;
    for (std::size_t layer = stage.first; layer < stage.last; ++layer) {
      bytes += problem_.constants.bytes_per_parameter * sizes.parameters[layer];
      bytes += problem_.constants.activation_factor * sizes.activations[layer] * plan_.micro_batch *
               in_flight;
    }
    return bytes;
  }

  void check_memory() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      for (const StageReplica& replica : plan_.stages[s].replicas) {
        const double bytes = memory_of(s, replica);
        verdict_.memory = std::max(verdict_.memory, bytes);
        const double capacity = kind(replica).memory;
        if (bytes > capacity && !verifying::same_value(bytes, capacity)) {
          complain(fmt::format("stage {} needs {:.3g} GB on each of {} x {}, which has {:.3g} GB",
                               s + 1, bytes / 1e9, replica.degree, kind(replica).name,
                               capacity / 1e9));
        }
      }
    }
  }

  // Of one layer in one pass, less what runs hide of the launches.
  static double pass_time(const GpuKind& kind, const LayerTimes& measured, std::size_t layer,
                          const std::vector<double> LayerTimes::*pass, double hidden) {
    double work = kInfinity;
    for (const LayerTimes& other : kind.times) {
      if (other.degree != measured.degree) continue;
      work = std::min(work, (other.*pass)[layer] / other.micro_batch * measured.micro_batch);
    }
    return hidden * work + (1 - hidden) * (measured.*pass)[layer];
  }

  double compute_of(const TrainingStage& stage, const StageReplica& replica) const {
    const GpuKind& gpu = kind(replica);
    const LayerTimes& measured =
        *problem_.times_of(problem_.pools[replica.pool].kind, replica.degree, plan_.micro_batch);
    const double hidden = problem_.constants.hidden_launches;
    double seconds = 0;
    for (std::size_t layer = stage.first; layer < stage.last; ++layer) {
      seconds += pass_time(gpu, measured, layer, &LayerTimes::forward, hidden) +
                 pass_time(gpu, measured, layer, &LayerTimes::backward, hidden);
    }
    return seconds;
  }

  double speed_between(std::size_t one, std::size_t other, int gpus, double bytes) const {
    const double size = std::min(std::max(bytes, 1e6), 1024e6) / 1e6;
    const double log_size = std::log2(size);
    double speed = 0;
    for (const PoolLink& link : problem_.links) {
      if (std::minmax(link.from, link.to) != std::minmax(one, other)) continue;
      const double fitted = 1e9 * (link.c + log_size * (link.b + log_size * link.a));
      const double part = std::min(1.0, static_cast<double>(gpus) / link.gpus);
      speed = std::max(speed, part * std::min(fitted, link.best));
    }
    return speed;
  }

  // There and back, between a stage's replica and the slowest replica of a neighbour that it meets.
  double boundary_time(std::size_t s, std::size_t r, std::size_t neighbour) const {
    const auto& here = plan_.stages[s].replicas;
    const auto& there = plan_.stages[neighbour].replicas;
    const std::size_t modulus = std::min(here.size(), there.size());
    const std::size_t end = plan_.stages[std::min(s, neighbour)].last;
    const double bytes = problem_.sizes_of(here[r].degree)->outputs[end - 1] * plan_.micro_batch;
    if (bytes == 0) return 0;
    double slowest = kInfinity;
    for (std::size_t i = 0; i < there.size(); ++i) {
      if (i % modulus != r % modulus) continue;
      slowest = std::min(slowest, speed_between(here[r].pool, there[i].pool, 1, bytes));
    }
    return bytes / slowest + bytes / slowest;
  }

  double reduction_time(const TrainingStage& stage) const {
    const std::size_t ring = stage.replicas.size();
    if (ring == 1) return 0;
    double bytes = 0;
    int streams = std::numeric_limits<int>::max();
    for (const StageReplica& replica : stage.replicas) {
      double numbers = 0;
      for (std::size_t layer = stage.first; layer < stage.last; ++layer) {
        numbers += problem_.sizes_of(replica.degree)->parameters[layer];
      }
      bytes = std::max(bytes, 4 * numbers * replica.degree);
      streams = std::min(streams, replica.degree);
    }
    double speed = kInfinity;
    for (std::size_t i = 0; i < ring; ++i) {
      const std::size_t next = i + 1 == ring ? 0 : i + 1;
      speed = std::min(speed, speed_between(stage.replicas[i].pool, stage.replicas[next].pool,
                                            streams, bytes / streams));
    }
    const double share = 1.0 - 1.0 / static_cast<double>(ring);
    return 2 * share * bytes / (speed * problem_.constants.all_reduce_efficiency);
  }

  void add_up() {
    double fill = 0;
    double busiest = 0;
    double update = 0;
    double reduction = 0;
    double hourly = 0;
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      const TrainingStage& stage = plan_.stages[s];
      double slowest = 0;
      for (std::size_t r = 0; r < stage.replicas.size(); ++r) {
        const StageReplica& replica = stage.replicas[r];
        double slot = compute_of(stage, replica);
        if (s > 0) slot += boundary_time(s, r, s - 1);
        if (s + 1 < plan_.stages.size()) slot += boundary_time(s, r, s + 1);
        slowest = std::max(slowest, slot);
        busiest = std::max(busiest, slot * replica.micro_batches - slot);
        double updating = 0;
        const LayerTimes& times = *problem_.times_of(problem_.pools[replica.pool].kind,
                                                     replica.degree, plan_.micro_batch);
        for (std::size_t l = stage.first; l < stage.last; ++l) updating += times.update[l];
        update = std::max(update, updating);
        hourly += kind(replica).price * replica.degree;
      }
      fill += slowest;
      reduction = std::max(reduction, reduction_time(stage));
    }
    verdict_.seconds = fill + busiest + update + reduction;
    verdict_.price = verdict_.seconds / 3600 * hourly;
  }

  const TrainingProblem& problem_;
  const TrainingPlan& plan_;
  TrainingVerdict verdict_;
};

}  // namespace

TrainingVerdict verify_training(const TrainingProblem& problem, const TrainingPlan& plan) {
  return TrainingChecker(problem, plan).verdict();
}

TrainingVerdict verify_training(const TrainingProblem& problem, const TrainingAnswer& answer) {
  TrainingVerdict verdict = verify_training(problem, answer.plan);
  if (verdict.seconds == 0) return verdict;
  const double value =
      problem.objective == TrainingObjective::step_time ? verdict.seconds : verdict.price;
  if (!verifying::same_value(answer.value, value)) {
    verdict.violations.push_back(
        fmt::format("the plan states the value {}, but it is {}", answer.value, value));
  }
  if (answer.lower_bound > value && !verifying::same_value(answer.lower_bound, value)) {
    verdict.violations.push_back(
        fmt::format("the lower bound {} is above the value {}", answer.lower_bound, value));
  }
  return verdict;
}

}  // namespace placewright
