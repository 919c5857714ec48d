// repeats, for pipelines: layers that are there again and again become one op each.
//
// coarsen/repetition.h finds the layers by structure. The chain of them is planned by `ideals`
// where it serves, else by `kinds`; where devices share by `shared-stages` and `shared-search`.
// Where nothing repeats, the answer is the start plan. O(ops log) beside the planners that it asks.
// No bound of its own. What it refuses: methods/layers.h.

#include <optional>
#include <utility>
#include <vector>

#include "coarsen/coarsening.h"
#include "coarsen/repetition.h"
#include "evaluate/memory.h"
#include "planners/methods/fill_rules.h"
#include "planners/methods/layers.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

constexpr double kPipelineShare = 0.7;  // of the time, for each planner of the chain

Coarsening layers_as_ops(const Problem& problem, const Repetition& layers) {
  Partition partition(problem.op_count());
  std::size_t count = layers.count;
  for (const OpId op : problem.ops()) {
    const std::size_t place = problem.topological_rank(op);
    partition[op] =
        CoarseSet{layers.holds(place) ? (place - layers.begin) / layers.period : count++};
  }
  return Coarsening(problem, partition);
}

std::vector<PlannerEntry> planners_of_chains(const Problem& problem) {
  if (problem.has_sharing()) return {shared_stages(), shared_search()};
  return {ideals(), kinds()};
}

Answer start_plan(const Problem& problem, Control& control) {
  if (control.start != nullptr) return Answer{.plan = *control.start};
  Control part = control.part("repeats", control.remaining());
  return fill_evenly(problem, part);
}

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const Repetition layers = longest_repetition(problem).value_or(Repetition{});
  Answer answer = start_plan(problem, control);
  if (!answer.plan || layers.count == 0) return answer;
  Answer best{.plan = std::move(answer.plan)};
  const Coarsening coarsening = layers_as_ops(problem, layers);
  std::optional<Plan> chain;
  for (const PlannerEntry& planner : planners_of_chains(problem)) {
    if (!planner.refusal(coarsening.coarse()).empty()) continue;
    Control part = control.apart(planner.name, kPipelineShare * control.remaining());
    if (chain) part.start = &*chain;
    Answer found = planner.plan(coarsening.coarse(), Settings{planner.options}, part);
    if (!found.plan) continue;
    Plan whole = coarsening.expand(*found.plan);
    if (whole.value < best.value() && memory_fits(problem, whole.placement)) {
      best.plan = std::move(whole);
      control.report(*best.plan, 0);
    }
    if (problem.has_sharing()) chain = std::move(found.plan);
  }
  return best;
}

}  // namespace

PlannerEntry repeats_in_pipelines() {
  return PlannerEntry{.name = "repeats",
                      .summary = "layers found by structure, planned once, then joined",
                      .objectives = {Objective::throughput},
                      .knows = kLayersKnow,
                      .plan = plan};
}

}  // namespace placewright
