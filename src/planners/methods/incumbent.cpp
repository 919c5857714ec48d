#include "planners/methods/incumbent.h"

#include <algorithm>
#include <utility>

#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "planners/exchange.h"
#include "planners/methods/contiguous_plan.h"
#include "planners/methods/contiguous_search.h"
#include "planners/methods/stage_model.h"

namespace placewright::throughput {

Incumbent::Incumbent(const Problem& problem, Control& control)
    : problem_(problem), control_(control) {
  if (control.start != nullptr) plan_ = *control.start;
}

void Incumbent::take_contiguous_plan(double share) {
  if (!control_.cannot_afford(seconds_of_stage_model(problem_), 0).empty()) return;
  ProblemDraft draft = problem_.draft();
  draft.rules.contiguity = Contiguity::joint;
  draft.rules.max_replicas = 1;
  const Problem joint(std::move(draft));
  if (!kContiguousKnows.covers(joint.features()) || !refuses_contiguous(joint).empty()) return;
  Control part = control_.part("ideals", control_.remaining() * share);
  // A start is wanted soon.
  const Answer found = best_contiguous_plan(joint, part, {.wide_from = 0});
  if (found.plan) offer(found.plan->placement);
  // Only under its own rule does its bound hold.
  if (problem_.rules().contiguity == Contiguity::joint && problem_.rules().max_replicas == 1) {
    raise_bound(found.certificate.lower_bound, found.certificate.method);
  }
}

bool Incumbent::offer(const Placement& placement) {
  for (const OpId op : problem_.ops()) {
    if (!placement[op].valid() || !problem_.allowed(op, placement[op])) return false;
  }
  if (!memory_fits(problem_, placement) || !contiguous(problem_, placement)) return false;
  if (pipeline_value(problem_, placement) >= value()) return false;
  plan_ = pipeline_plan(problem_, placement);
  control_.report(*plan_, bound());
  return true;
}

void Incumbent::take_from_others() {
  if (const auto other = better_elsewhere(control_.exchange, value())) plan_ = *other;
}

void Incumbent::raise_bound(double bound, std::string method) {
  if (bound > certificate_.lower_bound) certificate_ = {bound, std::move(method)};
}

bool Incumbent::settled() const {
  return plan_ && gap(value(), bound()) <= kOptimalGap;
}

Answer Incumbent::answer(std::string reason, bool proved_infeasible) {
  Answer answer;
  answer.certificate = certificate_;
  answer.certificate.lower_bound = std::min(certificate_.lower_bound, value());
  answer.plan = std::move(plan_);
  if (answer.plan) return answer;
  answer.reason = std::move(reason);
  answer.proved_infeasible = proved_infeasible;
  return answer;
}

}  // namespace placewright::throughput
