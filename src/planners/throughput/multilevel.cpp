// multilevel, for pipelines: a large problem through ever smaller ones (methods/multilevel.h),
// planned by `kinds`, improved by annealing that keeps stages contiguous
// (methods/stage_annealing.h). Where devices share, planned by `shared-stages` and improved by
// `shared-search`.

#include "planners/methods/multilevel.h"

#include "coarsen/blocks.h"
#include "planners/methods/fill_rules.h"
#include "planners/methods/stage_annealing.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

constexpr std::size_t kMostBlocks = 2000;  // that are annealed
constexpr std::uint64_t kMovesPerBlock = 200;

Answer quick(const Problem& problem, Control& control) {
  for (const PlannerEntry& planner : {kinds(), shared_stages()}) {
    if (planner.refusal(problem).empty()) {
      return planner.plan(problem, Settings{planner.options}, control);
    }
  }
  return fill_evenly(problem, control);
}

std::optional<Plan> improved(const Problem& problem, const Plan& plan, Control& control) {
  if (problem.has_sharing()) {
    const PlannerEntry planner = shared_search();
    control.start = &plan;
    return planner.plan(problem, Settings{planner.options}, control).plan;
  }
  if (problem.op_count() > kMostBlocks) return {};
  if (!control.cannot_afford(throughput::seconds_of_stage_model(problem), 0).empty()) return {};
  const throughput::StageModel model(problem, blocks_of(problem));
  return throughput::anneal_stages(model, plan, kMovesPerBlock * model.block_count(), control);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  return multilevel_plan(problem, {.quick = quick, .improved = improved}, control);
}

}  // namespace

PlannerEntry multilevel_pipelines() {
  return PlannerEntry{
      .name = "multilevel",
      .summary = "coarsened to some hundred ops, planned, and refined level by level",
      .objectives = {Objective::throughput},
      .effort = Effort::anytime,
      .share = 8,
      .worth_its_time = worth_coarsening,
      .knows = kCommonAndSharing -
               Features{Feature::free_sets, Feature::convex_sets, Feature::peak_memory},
      .plan = plan};
}

}  // namespace placewright
