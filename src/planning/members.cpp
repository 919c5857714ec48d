#include "planning/members.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "bounds/whole_times.h"
#include "planners/bound_of_problem.h"
#include "planning/checked_plan.h"
#include "planning/peak_memory.h"

namespace placewright {

Members::Members(const Problem& problem, Control& control)
    : problem_(problem),
      control_(control),
      exchange_(std::make_shared<Exchange>(
          [this](const std::string& member, const Plan& plan) { return is_right(member, plan); })),
      longest_check_(seconds_to_check(problem)),
      step_(step_of_latency(problem)) {
  if (control.start != nullptr) exchange_->start_from(*control.start);
}

void Members::run(const PlannerEntry& member, Control& part) {
  const std::shared_ptr<const Plan> start = exchange_->best();
  part.start = start.get();
  try {
    add(member, plan_within_memory(problem_, member, Settings{member.options}, part));
  } catch (const WrongPlan&) {
    throw;  // debug builds only: `fail` says so
  } catch (const std::bad_alloc&) {
    note(fmt::format("planner '{}' ran out of memory", member.name));
  } catch (const std::exception& error) {
    fail(fmt::format("planner '{}' failed: {}", member.name, error.what()));
  }
  for (const std::string& sentence : part.notes()) note(sentence);
}

void Members::take_bound_of_problem() {
  if (bound_taken_.exchange(true)) return;
  const Certificate bound = on_step(bound_of_problem(problem_, control_), step_);
  const std::lock_guard guard(mutex_);
  certificate_ = better_bound(certificate_, bound);
  exchange_->raise_bound(certificate_.lower_bound);
}

bool Members::settled() const {
  return proved_infeasible_ || exchange_->settled();
}

void Members::add(const PlannerEntry& member, Answer answer) {
  if (answer.plan) exchange_->offer(member.name, *answer.plan);
  const bool contradicted = answer.proved_infeasible && exchange_->best() != nullptr;
  {
    const std::lock_guard guard(mutex_);
    certificate_ = better_bound(certificate_, on_step(answer.certificate, step_));
    exchange_->raise_bound(certificate_.lower_bound);
    if (answer.plan) return;
    if (!answer.proved_infeasible) {
      reasons_.push_back(fmt::format("{}: {}", member.name, answer.reason));
      return;
    }
    if (!contradicted) {
      proof_ = answer.reason;
      proved_infeasible_ = true;
      return;
    }
  }
  fail(fmt::format("planner '{}' says that no plan exists, and there is one: {}", member.name,
                   answer.reason));
}

void Members::fail(const std::string& fault) {
  if (PLACEWRIGHT_DEBUG_CHECKS) throw WrongPlan(fault);
  note(fault);
}

void Members::note(const std::string& sentence) {
  const std::lock_guard guard(mutex_);
  control_.note(sentence);
}

bool Members::is_right(const std::string& member, const Plan& plan) {
  const auto begin = Control::Clock::now();
  const std::string fault = fault_of_plan(problem_, member, plan);
  const std::chrono::duration<double> taken = Control::Clock::now() - begin;
  double longest = longest_check_;
  while (taken.count() > longest && !longest_check_.compare_exchange_weak(longest, taken.count())) {
  }
  if (fault.empty()) return true;
  {
    const std::lock_guard guard(mutex_);
    if (wrong_plan_.empty()) wrong_plan_ = fault;
  }
  fail(fault);
  return false;
}

Answer Members::finish() {
  take_bound_of_problem();
  Answer answer;
  answer.certificate = certificate_;
  if (const auto best = exchange_->best()) {
    answer.plan = *best;
    answer.found_by = exchange_->found_by();
    return answer;
  }
  answer.proved_infeasible = proved_infeasible_;
  if (!wrong_plan_.empty() && !answer.proved_infeasible) throw WrongPlan(wrong_plan_);
  answer.reason = answer.proved_infeasible ? proof_
                  : reasons_.empty()       ? "no planner could be run in the time given"
                                           : fmt::format("{}", fmt::join(reasons_, "; "));
  return answer;
}

}  // namespace placewright
