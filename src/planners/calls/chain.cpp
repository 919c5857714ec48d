// calls-chain: the program over ideals that takes calls for a chain.
//
//   g(J, u) = least over steps I -> J of g(I, u') + duration of the step
//
// a step being one op on the host or one call, u the calls used (call_ideals.h). The sum is what
// the plan would take if nothing ran at the same time; the split is then timed as it is, and the
// best of several is kept. Ideals: all of them, with small sources and sinks left out until they
// are within `ideal-limit`, and the prefixes of a few topological orders of the whole graph.
//
// O(pairs of ideals x uses). With several calls per device the calls found are packed onto the
// devices; a packing that does not fit is dropped, so memory that is nearly full may leave nothing.
//
// Reference: J. Tarnawski et al., NeurIPS 2020 (the chain relaxation of their dynamic program).

#include "planners/calls/calls.h"
#include "planners/calls/walks.h"

namespace placewright {
namespace {

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  Answer answer;
  const auto limit = static_cast<std::size_t>(settings.integer("ideal-limit"));
  const auto orders = static_cast<std::size_t>(settings.integer("orders"));
  answer.plan = calls::best_chain(problem, limit, orders, control);
  if (!answer.plan) answer.reason = "no chain of calls was found that fits the devices' memory";
  return answer;
}

}  // namespace

PlannerEntry calls_chain() {
  return PlannerEntry{
      .name = "calls-chain",
      .summary = "program over ideals with calls one after the other, then the true latency",
      .objectives = {Objective::call_latency},
      .options = {{"ideal-limit", "down-sets looked at, at most", std::int64_t{1200}, 2, 1e6},
                  {"orders", "topological orders whose prefixes are tried", std::int64_t{3}, 1,
                   100}},
      .plan = plan};
}

}  // namespace placewright
