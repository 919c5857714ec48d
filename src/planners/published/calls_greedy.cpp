// calls-greedy: fill the accelerators one after the other along a topological order, up to memory
// (methods/call_filling.h). The paper's baseline.
//
// Reference: J. Tarnawski et al., NeurIPS 2020, "Efficient Algorithms for Device Placement of DNN
// Graph Operators" (latency minimisation, "greedy").

#include "planners/methods/call_filling.h"
#include "planners/published/published.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings&, Control&) {
  Answer answer;
  answer.plan = calls::filled_calls(problem);
  if (!answer.plan) answer.reason = "filling the accelerators in order leaves ops without a place";
  return answer;
}

}  // namespace

PlannerEntry calls_greedy() {
  return PlannerEntry{.name = "calls-greedy",
                      .summary = "fills the accelerators along a topological order up to memory",
                      .objectives = {Objective::call_latency},
                      .role = Role::published,
                      .plan = plan};
}

}  // namespace placewright
