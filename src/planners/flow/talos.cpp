// Talos: several models at once by weighted speed-up and min-cost flow, layer by layer.
//
//   packing      short neighbours in a chain become one op (chain_groups.h)
//   flow         the ready ops of each event are shared out by a min-cost flow (flow_rule.h)
//   refinement   ours: the best of the flow's plan, ASWM, TSAM, the models one after the other in
//                the gaps that are left, and where devices share resources every model whole with
//                its share of them (flow_plan.h); then local search over all ops
//
// `refine=none` is packing and flow alone, with our cost of waiting (flow_rule.h). With refinement
// the plan is never worse than ASWM's and TSAM's. The flow takes O(events x ready ops x devices);
// the search as much time as 3e7 op timings (about a second), or less where the plan meets the
// lower bound.
//
// Memory, pins, colocation, lanes, shared resources, links and host interconnects are respected;
// costs look at transfers without congestion, the plan is timed with it. Peak memory is left to the
// service.
//
// After "Talos" (weighted speed-up scheduling of concurrent models on CPU and accelerators).

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "planners/bound_of_problem.h"
#include "planners/flow/chain_groups.h"
#include "planners/flow/flow.h"
#include "planners/flow/flow_plan.h"
#include "planners/methods/transient_rule.h"
#include "planners/methods/whole_models.h"

namespace placewright {
namespace {

Answer published(const Problem& problem, const Settings& settings, Control& control) {
  const Partition partition =
      packed_chains(problem, settings.number("pack-speedup"), settings.number("pack-time"));
  const Coarsening packing(problem, partition);
  if (packing.coarse().op_count() == problem.op_count()) return flow_plan(problem, control);
  Answer answer = flow_plan(packing.coarse(), control);
  if (answer.plan) {
    answer.plan = packing.expand(*answer.plan);
    return answer;
  }
  // Packed ops may not fit where single ones do: that they do not proves nothing.
  if (!control.should_stop()) return flow_plan(problem, control);
  Answer none;
  none.reason = fmt::format("no plan before the {}", control.stop_reason());
  return none;
}

void keep_better(Answer& best, Answer other) {
  if (other.plan && other.value() < best.value()) best = std::move(other);
}

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  Answer answer = published(problem, settings, control);
  if (settings.text("refine") == "none" || answer.proved_infeasible) return answer;
  if (answer.plan) control.report(*answer.plan, 0);
  for (const auto& other : {models_on_their_best_devices, largest_speed_ups_first}) {
    if (control.should_stop()) break;
    Control part = control.part("talos", control.remaining());
    keep_better(answer, other(problem, part));
  }
  if ((problem.has_sharing() || problem.has_overheads()) && !control.should_stop()) {
    Control part = control.part("talos", control.remaining());
    keep_better(answer, whole_models_plan(problem, part));
  }
  if (!control.should_stop()) {
    Control part = control.part("talos", 0.5 * control.remaining());
    keep_better(answer, models_in_turn(problem, part));
  }
  if (control.start != nullptr && control.start->value < answer.value()) {
    answer.plan = *control.start;
  }
  if (!answer.plan || control.should_stop()) return answer;
  control.report(*answer.plan, 0);
  const double goal = bound_of_problem(problem, control).lower_bound;
  answer.plan = refined_completion(problem, std::move(*answer.plan), goal, control);
  return answer;
}

}  // namespace

PlannerEntry talos() {
  return PlannerEntry{
      .name = "talos",
      .summary = "weighted speed-up and min-cost flow, layer by layer, then refined (Talos)",
      .objectives = {Objective::total_completion},
      .knows = kCommonAndSharing,
      .options = {{.name = "refine",
                   .text = "what follows packing and flow: nothing, or local search",
                   .standard = std::string{"search"},
                   .choices = {"none", "search"}},
                  {"pack-speedup", "packing: speed-ups within this ratio of the first; 1: none",
                   2.0, 1, 1e9},
                  {"pack-time", "packing: until a group takes this long on the CPU, in ms; 0: none",
                   10.0, 0, 1e12}},
      .plan = plan};
}

}  // namespace placewright
