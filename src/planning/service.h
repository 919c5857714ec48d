// The planning service: what every front end calls to get a plan.
//
//   request -> choose planner -> prove infeasible, or coarsen -> plan -> expand -> verify
//           -> join bounds -> outcome
//
// A plan leaves here only after the verifier has accepted it. Infeasible, out of time and
// interrupted are outcomes. A request that cannot be served as asked (unknown planner or option, a
// planner that does not serve the objective, a start plan that is not valid) is a RequestError. A
// planner that fails is an outcome with `fault`, never a wrong plan.
//
// With coarsening the planner sees the smaller problem (coarsening.h). Its bounds and proofs are
// kept only where the coarsening loses nothing; else the certificate is that of the problem itself.

#pragma once

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "coarsen/coarsening.h"
#include "planners/registry.h"
#include "problem/plan.h"

namespace placewright {

class RequestError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct PlanRequest {
  std::string planner = "auto";
  std::vector<std::pair<std::string, std::string>> options = {};  // planner options as text
  Budget budget = {};
  const Plan* start = nullptr;  // improve this one; the outcome is never worse
  CoarsenOptions coarsening = {};
};

// What coarsening did, where it was asked for.
struct CoarseningSummary {
  CoarsenMethod method = CoarsenMethod::none;
  std::size_t ops_before = 0;
  std::size_t ops_after = 0;
  bool lossless = true;
};

struct PlanOutcome {
  Answer answer;
  std::string planner;
  Settings settings;
  double seconds = 0;
  std::string fault = {};  // an internal error, in one sentence; then there is no plan
  std::optional<CoarseningSummary> coarsening = {};

  [[nodiscard]] double value() const { return answer.value(); }
};

PlanOutcome make_plan(const Problem& problem, const Registry& registry, const PlanRequest& request,
                      const std::atomic<bool>* interrupted = nullptr,
                      const Control::Observer& observer = {});

// Several planners on one problem, best value first; those without a plan last.
struct Comparison {
  std::vector<PlanOutcome> outcomes;
  Certificate bound;  // the best of all
};

// `planners` empty: all that fit, except those that only run others. Each gets an equal share of
// the time that is left when its turn comes; the quick ones come first.
Comparison compare(const Problem& problem, const Registry& registry,
                   const std::vector<std::string>& planners, const PlanRequest& request,
                   const std::atomic<bool>* interrupted = nullptr,
                   const Control::Observer& observer = {});

}  // namespace placewright
