// The planning service: what every front end calls to get a plan.
//
//   request -> choose planner -> prove infeasible, or coarsen -> plan -> expand -> verify
//           -> join bounds -> outcome
//
// A plan leaves here only after the verifier has accepted it. Infeasible, out of time and
// interrupted are outcomes. A request that cannot be served as asked is a RequestError. A planner
// that fails is an outcome with `fault`, never a wrong plan.
//
// With coarsening the planner sees the smaller problem (coarsening.h). Its bounds and proofs are
// kept only where the coarsening loses nothing; else the certificate is that of the problem itself.

#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "planners/registry.h"
#include "planning/plan_request.h"
#include "problem/plan.h"

namespace placewright {

PlanOutcome make_plan(const Problem& problem, const Registry& registry, const PlanRequest& request,
                      const std::atomic<bool>* interrupted = nullptr,
                      const Control::Observer& observer = {});

// Several planners on one problem, best value first; those without a plan last, and with them those
// whose turn came when no time was left.
struct Comparison {
  std::vector<PlanOutcome> outcomes;
  std::map<std::string, double> seconds_given;  // by planner, how long it might have taken
  Certificate bound;                            // the best of all
};

// `planners` empty: all that fit, except those that only run others. Each gets an equal share of
// the time that is left when its turn comes; the quick ones come first.
Comparison compare(const Problem& problem, const Registry& registry,
                   const std::vector<std::string>& planners, const PlanRequest& request,
                   const std::atomic<bool>* interrupted = nullptr,
                   const Control::Observer& observer = {});

}  // namespace placewright
