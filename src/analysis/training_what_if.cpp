#include "analysis/training_what_if.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace placewright {
namespace {

// Pools with no node leave the problem, and their links with them.
TrainingProblem with_counts(const TrainingProblem& problem, const std::vector<int>& counts) {
  TrainingProblem changed = problem;
  changed.pools.clear();
  changed.links.clear();
  std::vector<std::optional<std::size_t>> number(counts.size());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (counts[p] == 0) continue;
    number[p] = changed.pools.size();
    changed.pools.push_back(problem.pools[p]);
    changed.pools.back().count = counts[p];
  }
  for (PoolLink link : problem.links) {
    if (!number[link.from] || !number[link.to]) continue;
    link.from = *number[link.from];
    link.to = *number[link.to];
    changed.links.push_back(link);
  }
  return changed;
}

std::vector<TrainingVariant> variants_of(const TrainingProblem& problem) {
  std::vector<int> counts;
  for (const NodePool& pool : problem.pools) counts.push_back(pool.count);
  std::vector<TrainingVariant> variants = {{"as it is", counts}};
  const auto add = [&](std::string name, const std::vector<int>& changed) {
    const bool known = std::ranges::any_of(
        variants, [&](const TrainingVariant& other) { return other.counts == changed; });
    const bool empty = std::ranges::all_of(changed, [](int count) { return count == 0; });
    if (!known && !empty) variants.push_back({std::move(name), changed});
  };
  const auto with = [&](std::size_t p, int count) {
    std::vector<int> changed = counts;
    changed[p] = count;
    return changed;
  };
  for (std::size_t p = 0; p < counts.size(); ++p) {
    const std::string pool = pool_name(problem, p);
    add("without " + pool, with(p, 0));
    add("a node less of " + pool, with(p, counts[p] - 1));
    add("a node more of " + pool, with(p, counts[p] + 1));
    add("twice " + pool, with(p, counts[p] * 2));
  }
  for (const int part : {8, 4, 2}) {
    std::vector<int> changed = counts;
    for (int& count : changed) count /= part;
    add(fmt::format("1/{} of all", part), changed);
  }
  return variants;
}

bool is_part_of(const TrainingVariant& small, const TrainingVariant& large) {
  return std::ranges::equal(small.counts, large.counts, std::ranges::less_equal{});
}

double value_of(const TrainingVariant& variant, TrainingObjective objective) {
  if (!variant.planned) return kInfinity;
  return objective == TrainingObjective::step_time ? variant.seconds : variant.price;
}

void share_plans(std::vector<TrainingVariant>& variants, TrainingObjective objective) {
  for (TrainingVariant& large : variants) {
    for (const TrainingVariant& small : variants) {
      if (!is_part_of(small, large) || value_of(small, objective) >= value_of(large, objective)) {
        continue;
      }
      large.planned = true;
      large.gpus = small.gpus;
      large.seconds = small.seconds;
      large.price = small.price;
    }
  }
}

void mark_efficient(std::vector<TrainingVariant>& variants) {
  for (TrainingVariant& one : variants) {
    one.efficient = one.planned && std::ranges::none_of(variants, [&](const auto& other) {
                      return other.planned && other.seconds <= one.seconds &&
                             other.price <= one.price &&
                             (other.seconds < one.seconds || other.price < one.price);
                    });
  }
}

}  // namespace

std::vector<TrainingVariant> vary_training_cluster(const TrainingProblem& problem,
                                                   const TrainingLimits& limits) {
  std::vector<TrainingVariant> variants = variants_of(problem);
  for (TrainingVariant& variant : variants) {
    if (limits.stop != nullptr && limits.stop->load()) break;
    const TrainingProblem changed = with_counts(problem, variant.counts);
    const TrainingAnswer answer = plan_training(changed, limits).answer;
    if (answer.plan.stages.empty()) continue;
    const StepCost cost = StepModel(changed).cost(answer.plan);
    variant.planned = true;
    variant.gpus = gpus_of(answer.plan);
    variant.seconds = cost.seconds;
    variant.price = cost.price;
  }
  share_plans(variants, problem.objective);
  mark_efficient(variants);
  return variants;
}

}  // namespace placewright
