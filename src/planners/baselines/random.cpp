// Random placements, the best of many: the floor that every other planner must beat.
//
// Each sample gives every group a random device that has room; where contiguous sets are asked for,
// each device gets a run of random length. O(ops) per sample, plus its evaluation.

#include <fmt/format.h>

#include "evaluate/placement_plan.h"
#include "planners/baselines/baselines.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/fill.h"
#include "planners/random_numbers.h"

namespace placewright {
namespace {

Answer sample_runs(const Problem& problem, RandomNumbers& random, Control& control) {
  Table<DeviceId, std::size_t> length(problem.device_count());
  for (std::size_t& ops : length) ops = 1 + random.below(problem.op_count());
  return fill_plan(
      problem, [&](const Fill& fill) { return fill.ops > length[fill.device]; }, control);
}

Answer sample_groups(const Problem& problem, RandomNumbers& random, Control& control) {
  return construct(problem, control, [&](DeviceChoice& choice) -> std::optional<Plan> {
    Placement placement(problem.op_count());
    for (const OpId op : problem.topological_order()) {
      const auto candidates = choice.candidates(op);
      if (candidates.empty()) return std::nullopt;
      placement[op] = candidates[random.below(candidates.size())];
      choice.take(op, placement[op]);
    }
    return plan_of_placement(problem, placement);
  });
}

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  RandomNumbers random(control.budget().seed);
  const bool runs = asks_contiguity(problem.objective(), problem.rules());
  Answer best;
  for (std::int64_t i = 0; i < settings.integer("samples"); ++i) {
    if (i > 0 && control.should_stop(1)) break;
    Answer sample =
        runs ? sample_runs(problem, random, control) : sample_groups(problem, random, control);
    if (sample.proved_infeasible) return sample;
    if (!sample.plan) {
      if (!best.plan) best.reason = std::move(sample.reason);
    } else if (sample.value() < best.value()) {
      best.plan = std::move(sample.plan);
      control.report(best.value(), 0);
    }
  }
  return best;
}

}  // namespace

PlannerEntry random_placement() {
  return PlannerEntry{.name = "random",
                      .summary = "the best of many random placements",
                      .objectives = every_objective(),
                      .role = Role::yardstick,
                      .knows = kCommonAndSharing,
                      .options = {{.name = "samples",
                                   .text = "how many placements are tried",
                                   .standard = std::int64_t{100},
                                   .lower = 1,
                                   .upper = 1e12}},
                      .plan = plan};
}

}  // namespace placewright
