#include "planners/methods/contiguous_search.h"

#include <algorithm>

#include "coarsen/dominance.h"
#include "evaluate/pipeline.h"

namespace placewright::throughput {

StageModel contiguous_model(const Problem& problem) {
  return StageModel(problem, merge_dominated(problem, blocks_of(problem)));
}

std::optional<Plan> plan_of_split(const StageModel& model, const Split& split) {
  const Problem& problem = model.problem();
  std::vector<std::size_t> next(model.classes().size(), 0);
  std::vector<Stage> stages;
  for (const SplitStage& part : split.stages) {
    Stage stage;
    for (const std::size_t c : part.devices) {
      stage.devices.push_back(model.classes()[c].devices[next[c]++]);
    }
    for (const std::uint32_t block : part.blocks) {
      const auto ops = model.blocks().ops[BlockId{block}];
      stage.ops.insert(stage.ops.end(), ops.begin(), ops.end());
    }
    std::sort(stage.ops.begin(), stage.ops.end());
    stages.push_back(std::move(stage));
  }
  Plan plan = pipeline_plan(problem, std::move(stages));
  if (!(plan.value < kInfinity)) return std::nullopt;
  return plan;
}

double highest_cutoff(const StageModel& model) {
  return model.most_value() * (1 + 1e-6) + 1e-9;
}

ProgramResult best_linear_split(const StageModel& model, std::size_t random_orders, double bound,
                                Control& control) {
  return best_split_along(model, linear_orders(model, random_orders, control.budget().seed), bound,
                          control);
}

ProgramResult best_split_along(const StageModel& model,
                               const std::vector<std::vector<std::uint32_t>>& orders, double bound,
                               Control& control) {
  const IdealFamily family = IdealFamily::prefixes(model, orders, control);
  const double highest = highest_cutoff(model);
  for (double excess = 0.02;; excess *= 2) {
    // A bound of 0 does not grow.
    const double cutoff = excess > kLargeExcess ? highest : std::min(highest, bound * (1 + excess));
    ProgramResult result = best_split(family, cutoff, bound, control);
    if (!result.complete || result.split || cutoff >= highest) return result;
  }
}

std::string refuses_contiguous(const Problem& problem) {
  if (usage_count(problem) > kMostUsages) return "it has too many devices of different classes";
  return {};
}

}  // namespace placewright::throughput
