#include "planning/service.h"

#include <algorithm>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "coarsen/coarsening.h"
#include "planners/bound_of_problem.h"
#include "planners/learned/learned.h"
#include "planners/settings_error.h"
#include "planning/checked_plan.h"
#include "planning/doubtful_gain.h"
#include "planning/feasibility.h"
#include "planning/peak_memory.h"
#include "planning/portfolio.h"
#include "planning/suggestion.h"
#include "planning/tie_breaking.h"
#include "problem/cost_source.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// Rounding lets a bound end up a hair above the value of an optimal plan; more than this is a
// wrong bound.
constexpr double kBoundTolerance = 1e-6;

std::vector<std::string> names_of(const std::vector<const PlannerEntry*>& entries) {
  std::vector<std::string> names;
  for (const PlannerEntry* entry : entries) names.push_back(entry->name);
  return names;
}

const PlannerEntry& chosen_planner(const Problem& problem, const Registry& registry,
                                   const std::string& name) {
  const PlannerEntry* entry = registry.find(name, problem.objective());
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const PlannerEntry& known : registry.entries()) names.push_back(known.name);
    throw RequestError(fmt::format("unknown planner '{}'{}", name, did_you_mean(name, names)));
  }
  if (!entry->serves(problem.objective())) {
    throw RequestError(fmt::format(
        "planner '{}' does not support the objective '{}' (these do: {})", name,
        name_of(problem.objective()), fmt::join(names_of(registry.fitting(problem)), ", ")));
  }
  const std::string refusal = entry->refusal(problem);
  if (!refusal.empty()) {
    throw RequestError(
        fmt::format("planner '{}' does not support this problem: {}", name, refusal));
  }
  return *entry;
}

Settings chosen_settings(const PlannerEntry& entry, const PlanRequest& request) {
  Settings settings{entry.options};
  for (const auto& [name, text] : request.options) {
    try {
      settings.set(name, text);
    } catch (const std::invalid_argument& error) {
      throw RequestError(fmt::format("planner '{}': {}", entry.name, error.what()));
    }
  }
  return settings;
}

void require_valid_start(const Problem& problem, const Plan* start) {
  if (start == nullptr) return;
  const auto violations = verify(problem, *start);
  if (violations.empty()) return;
  throw RequestError(
      fmt::format("the start plan is not valid for this problem: {}", violations.front().message));
}

// The problem as the request has it coarsened; nullopt if it asks for none.
std::optional<Coarsening> coarsened(const Problem& problem, const PlanRequest& request) {
  if (request.coarsening.method == CoarsenMethod::none) return std::nullopt;
  return std::optional<Coarsening>(std::in_place, problem, request.coarsening);
}

const Problem& planned_problem(const Problem& problem,
                               const std::optional<Coarsening>& coarsening) {
  return coarsening ? coarsening->coarse() : problem;
}

// One planner with its settings, about to run.
struct Run {
  const Problem& problem;
  const PlannerEntry& entry;
  const Settings& settings;
  const PlanRequest& request;
  const std::optional<Coarsening>& coarsening;

  [[nodiscard]] const Problem& planned() const { return planned_problem(problem, coarsening); }
  [[nodiscard]] bool loses_bounds() const { return coarsening && !coarsening->lossless(); }
};

// The planner's own answer, and its failures as a fault or a reason.
void plan_into(PlanOutcome& outcome, const Run& run, Control& control) {
  control.start = run.coarsening ? nullptr : run.request.start;
  if (PLACEWRIGHT_DEBUG_CHECKS) {
    control.check_incumbent = [&](const Plan& incumbent) {
      const std::string fault = fault_of_incumbent(run.planned(), run.entry.name, incumbent);
      if (!fault.empty()) throw WrongPlan(fault);
    };
  }
  try {
    outcome.answer = plan_within_memory(run.planned(), run.entry, run.settings, control);
    control.deliver_reports();
  } catch (const std::bad_alloc&) {
    outcome.answer.reason = fmt::format("planner '{}' ran out of memory", run.entry.name);
  } catch (const SettingsError& error) {
    throw RequestError(fmt::format("planner '{}': {}", run.entry.name, error.what()));
  } catch (const WrongPlan& wrong) {
    outcome.fault = wrong.what();
  } catch (const std::exception& error) {
    outcome.fault = fmt::format("planner '{}' failed: {}", run.entry.name, error.what());
  }
}

// The answer for the coarse problem becomes one for the problem itself.
void expand_answer(PlanOutcome& outcome, const Run& run) {
  if (!run.coarsening) return;
  const Coarsening& coarsening = *run.coarsening;
  Answer& answer = outcome.answer;
  outcome.coarsening = CoarseningSummary{run.request.coarsening.method, run.problem.op_count(),
                                         coarsening.coarse().op_count(), coarsening.lossless()};
  if (answer.plan) answer.plan = coarsening.expand(*answer.plan);
  if (coarsening.lossless()) return;
  answer.certificate = Certificate{};
  if (!answer.proved_infeasible) return;
  answer.proved_infeasible = false;
  answer.reason =
      fmt::format("no plan fits after coarsening; without --coarsen one may: {}", answer.reason);
}

// "Improve this one": what the planner found, or the start itself where that is better.
void keep_start_if_better(PlanOutcome& outcome, const Plan* start) {
  if (start == nullptr || !outcome.fault.empty() || outcome.value() <= start->value) return;
  outcome.answer.plan = *start;
  outcome.answer.proved_infeasible = false;
  outcome.answer.reason.clear();
  outcome.answer.found_by = "start plan";
}

void join_bound(PlanOutcome& outcome, const Certificate& bound) {
  Certificate& own = outcome.answer.certificate;
  own = better_bound(own, bound);
  if (!outcome.answer.plan) return;
  const double value = outcome.value();
  if (own.lower_bound > value && own.lower_bound - value > kBoundTolerance * value) {
    outcome.fault =
        fmt::format("planner '{}' made a plan of value {}, below the lower bound {} ({})",
                    outcome.planner, value, own.lower_bound, own.method);
    outcome.answer.plan.reset();
    return;
  }
  own.lower_bound = std::min(own.lower_bound, value);
}

void verify_outcome(const Problem& problem, PlanOutcome& outcome) {
  if (!outcome.answer.plan) return;
  const std::string fault = fault_of_plan(problem, outcome.planner, *outcome.answer.plan);
  if (fault.empty()) return;
  outcome.fault = fault;
  outcome.answer.plan.reset();
}

void explain_missing_plan(PlanOutcome& outcome) {
  Answer& answer = outcome.answer;
  if (answer.plan) return;
  if (!outcome.fault.empty()) {
    answer.proved_infeasible = false;
    answer.reason = fmt::format("internal error: {}", outcome.fault);
  } else if (answer.reason.empty()) {
    answer.reason = fmt::format("planner '{}' found no plan", outcome.planner);
  }
}

// A cut of estimated costs stays only for a gain that is beyond their error. A start that is better
// than the plan without a cut was asked for.
void drop_doubtful_cut(PlanOutcome& outcome, const Run& run, Control& control) {
  std::optional<Plan> uncut = plan_instead_of_doubtful(run.problem, *outcome.answer.plan);
  if (!uncut) return;
  if (run.request.start != nullptr && run.request.start->value < uncut->value) return;
  control.note(
      fmt::format("the best cut is estimated to gain {:.1f} %, less than the {:.0f} % by which "
                  "such estimates are off: {} uncut",
                  100 * (uncut->value / outcome.value() - 1), 100 * kErrorOfEstimatedRatios,
                  run.problem.model_count() > 1 ? "the models stay" : "the model stays"));
  outcome.answer.plan = std::move(uncut);
  outcome.answer.found_by = "no cut";
}

// The steps of every request.
PlanOutcome run_planner(const Run& run, Control& control, const Certificate& bound) {
  PlanOutcome outcome{.answer = {}, .planner = run.entry.name, .settings = run.settings};
  outcome.seed = run.request.budget.seed;
  plan_into(outcome, run, control);
  expand_answer(outcome, run);
  keep_start_if_better(outcome, run.request.start);
  verify_outcome(run.problem, outcome);
  // Only where the user leaves the choice to us: a method that is asked for by name gives its own
  // plan.
  if (outcome.answer.plan && run.entry.effort == Effort::portfolio) {
    outcome.answer.plan =
        with_fewer_devices_and_transfers(run.problem, std::move(*outcome.answer.plan), control);
    drop_doubtful_cut(outcome, run, control);
  }
  join_bound(outcome, bound);
  explain_missing_plan(outcome);
  outcome.notes = control.notes();
  outcome.seconds = control.elapsed();
  return outcome;
}

// The bound of the problem itself; its name says so where the planner saw another.
Certificate own_bound(const Run& run, const Control& control) {
  Certificate bound = bound_of_problem(run.problem, control);
  if (run.loses_bounds()) bound.method += ", of the problem before coarsening";
  return bound;
}

PlanOutcome infeasible(const PlannerEntry& entry, const Settings& settings, std::string proof) {
  PlanOutcome outcome{.answer = {}, .planner = entry.name, .settings = settings};
  outcome.answer.proved_infeasible = true;
  outcome.answer.reason = std::move(proof);
  return outcome;
}

PlanOutcome without_time(const PlannerEntry& entry, const Settings& settings) {
  PlanOutcome outcome{.answer = {}, .planner = entry.name, .settings = settings};
  outcome.answer.reason = "no time was left for it";
  return outcome;
}

std::vector<const PlannerEntry*> chosen_planners(const Problem& problem, const Registry& registry,
                                                 const std::vector<std::string>& names) {
  std::vector<const PlannerEntry*> entries;
  if (names.empty()) {
    entries = registry.fitting(problem);
    std::erase_if(entries, [](const PlannerEntry* e) { return e->effort == Effort::portfolio; });
  }
  for (const std::string& name : names) {
    entries.push_back(&chosen_planner(problem, registry, name));
  }
  return in_order_of_effort(std::move(entries));
}

}  // namespace

PlanOutcome make_plan(const Problem& problem, const Registry& registry, const PlanRequest& request,
                      const std::atomic<bool>* interrupted, const Control::Observer& observer) {
  if (const auto same = without_peak_limits(problem)) {
    return make_plan(*same, registry, request, interrupted, observer);
  }
  // The clock runs from here: coarsening, bounds and the final check are within the limit.
  const Control whole(request.planner, request.budget, interrupted, observer);
  const std::optional<Coarsening> coarsening = coarsened(problem, request);
  const PlannerEntry& entry =
      chosen_planner(planned_problem(problem, coarsening), registry, request.planner);
  const Settings settings = chosen_settings(entry, request);
  require_valid_start(problem, request.start);
  if (auto proof = proof_of_infeasibility(problem)) {
    return infeasible(entry, settings, std::move(*proof));
  }
  // A portfolio keeps back the time for its checks itself.
  const double check = entry.effort == Effort::portfolio ? 0 : seconds_to_check(problem);
  Control control = whole.part(entry.name, whole.remaining() - check);
  const Run run{problem, entry, settings, request, coarsening};
  // A portfolio has asked for the same bound already.
  const bool known = entry.effort == Effort::portfolio && !run.loses_bounds();
  const Certificate bound = known ? Certificate{} : own_bound(run, whole);
  PlanOutcome outcome = run_planner(run, control, bound);
  outcome.seconds = whole.elapsed();
  return outcome;
}

Comparison compare(const Problem& problem, const Registry& registry,
                   const std::vector<std::string>& planners, const PlanRequest& request,
                   const std::atomic<bool>* interrupted, const Control::Observer& observer) {
  if (const auto same = without_peak_limits(problem)) {
    return compare(*same, registry, planners, request, interrupted, observer);
  }
  const std::optional<Coarsening> coarsening = coarsened(problem, request);
  const auto entries = chosen_planners(planned_problem(problem, coarsening), registry, planners);
  require_valid_start(problem, request.start);
  const std::optional<std::string> proof = proof_of_infeasibility(problem);
  Comparison comparison;
  const Control whole("compare", request.budget, interrupted, observer);
  comparison.bound = bound_of_problem(problem, whole);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Settings settings{entries[i]->options};
    if (proof) {
      comparison.outcomes.push_back(infeasible(*entries[i], settings, *proof));
      continue;
    }
    const double given = std::max(0.0, whole.remaining() / static_cast<double>(entries.size() - i));
    comparison.seconds_given[entries[i]->name] = given;
    if (given == 0) {
      comparison.outcomes.push_back(without_time(*entries[i], settings));
      continue;
    }
    Control control = whole.part(entries[i]->name, given);
    const Run run{problem, *entries[i], settings, request, coarsening};
    comparison.outcomes.push_back(run_planner(run, control, comparison.bound));
    comparison.bound =
        better_bound(comparison.bound, comparison.outcomes.back().answer.certificate);
  }
  for (PlanOutcome& outcome : comparison.outcomes) join_bound(outcome, comparison.bound);
  std::stable_sort(
      comparison.outcomes.begin(), comparison.outcomes.end(),
      [](const PlanOutcome& a, const PlanOutcome& b) { return a.value() < b.value(); });
  return comparison;
}

}  // namespace placewright
