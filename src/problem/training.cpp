#include "problem/training.h"

#include <algorithm>
#include <functional>

namespace placewright {

const LayerSizes* TrainingProblem::sizes_of(int degree) const {
  const auto found = std::ranges::find(sizes, degree, &LayerSizes::degree);
  return found == sizes.end() ? nullptr : &*found;
}

const LayerTimes* TrainingProblem::times_of(std::size_t kind, int degree, int micro_batch) const {
  const std::vector<LayerTimes>& times = kinds[kind].times;
  const auto found = std::ranges::find_if(times, [&](const LayerTimes& entry) {
    return entry.degree == degree && entry.micro_batch == micro_batch;
  });
  return found == times.end() ? nullptr : &*found;
}

std::string pool_name(const TrainingProblem& problem, std::size_t pool) {
  const NodePool& nodes = problem.pools[pool];
  const std::string& kind = problem.kinds[nodes.kind].name;
  return nodes.zone.empty() ? kind : kind + "@" + nodes.zone;
}

int gpus_of(const TrainingPlan& plan) {
  int gpus = 0;
  for (const TrainingStage& stage : plan.stages) {
    for (const StageReplica& replica : stage.replicas) gpus += replica.degree;
  }
  return gpus;
}

int nodes_needed(std::vector<int> degrees, int gpus) {
  std::ranges::sort(degrees, std::ranges::greater{});
  std::vector<int> free;
  for (const int degree : degrees) {
    auto node = std::ranges::find_if(free, [&](int left) { return left >= degree; });
    if (node == free.end()) node = free.insert(free.end(), gpus);
    *node -= degree;
  }
  return static_cast<int>(free.size());
}

}  // namespace placewright
