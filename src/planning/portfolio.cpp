#include "planning/portfolio.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "planners/bound_of_problem.h"
#include "planning/checked_plan.h"
#include "planning/peak_memory.h"

namespace placewright {
namespace {

// A quick planner ends by itself; one that needs this much of what is left is stopped.
constexpr double kQuickShare = 0.25;
// The same where one of our own has found a plan: another of our own may take a fifth, or eight
// times what all before have taken, up to half; one that is here for comparison less, since it
// hardly ever finds a better plan; a yardstick has its claim only.
constexpr double kOwnQuickShare = 0.2;
constexpr double kMostOwnQuickShare = 0.5;
constexpr double kPatience = 8;
constexpr double kComparisonShare = 0.1;
// Beyond so many ops exact planners prove little: their claim on the time falls with the size.
// Those that cannot begin at all hand it on at once.
constexpr double kProvableOps = 8000;
// Up to so many ops they prove most plans in a second, and what improves plans has little left to
// improve: each gets this much of what is left, since a proof that is cut short is worth nothing.
constexpr std::size_t kSmallOps = 32;
constexpr double kSmallShare = 0.5;
// Up to so many ops quick and exact members need some milliseconds. All of them together may take
// this many seconds beyond the limit: on a loaded machine it may be over before one has begun.
constexpr std::size_t kTinyOps = 8;
constexpr double kTinySeconds = 1;

// Instant planners first, so that there is a plan whatever the limit; then quick ones, our own
// before those that are here for comparison; then proofs; then what goes on improving.
int turn(const PlannerEntry& entry) {
  if (entry.effort == Effort::portfolio) return 5;
  if (entry.effort == Effort::instant) return 0;
  if (entry.strength == Strength::exact) return 3;
  if (entry.effort == Effort::anytime) return 4;
  return entry.role == Role::own ? 1 : 2;
}

bool solves_at_once(const PlannerEntry& member, const Problem& problem) {
  return problem.op_count() <= kTinyOps &&
         (member.strength == Strength::exact || member.effort == Effort::quick);
}

// A part of the time that is left, or of what a tiny problem may take beyond it.
Control part_of(const Control& whole, const PlannerEntry& member, double seconds, double beyond) {
  if (seconds >= beyond) return whole.part(member.name, seconds);
  Budget budget = whole.budget();
  budget.seconds = beyond;
  Control part(member.name, budget, whole.interruption());
  part.check_incumbent = whole.check_incumbent;
  return part;
}

double claim(const PlannerEntry& member, const Problem& problem) {
  if (member.strength != Strength::exact) return member.share;
  return member.share * std::min(1.0, kProvableOps / static_cast<double>(problem.op_count()));
}

// Of the time that is left, when a quick planner's turn comes.
double quick_share(const PlannerEntry& member, bool quick_plan, double elapsed, double left) {
  const bool own = turn(member) == 1;
  if (!quick_plan) return own ? 1 : kQuickShare;
  if (member.role == Role::yardstick) return 0;
  if (!own) return kComparisonShare;
  return std::clamp(kPatience * elapsed / left, kOwnQuickShare, kMostOwnQuickShare);
}

// The best of what the members have answered so far.
class Best {
 public:
  Best(const Problem& problem, Control& control)
      : problem_(problem), control_(control), longest_check_(seconds_to_check(problem)) {
    if (control.start != nullptr) best_.plan = *control.start;
  }

  // On large problems it takes longer than an instant planner, so it waits for those.
  void take_bound_of_problem() {
    if (std::exchange(bound_taken_, true)) return;
    best_.certificate = better_bound(best_.certificate, bound_of_problem(problem_, control_));
  }

  // Takes over a better plan, a better bound, a proof that nothing fits.
  void add(const PlannerEntry& member, Answer answer) {
    best_.certificate = better_bound(best_.certificate, answer.certificate);
    if (answer.plan && answer.value() < best_.value()) {
      if (is_right(member, *answer.plan)) {
        best_.plan = std::move(answer.plan);
        best_.found_by = member.name;
      }
    } else if (!answer.plan) {
      if (answer.proved_infeasible && best_.plan) {
        return fail(fmt::format("planner '{}' says that no plan exists, and there is one: {}",
                                member.name, answer.reason));
      }
      best_.proved_infeasible |= answer.proved_infeasible;
      reasons_.push_back(answer.proved_infeasible
                             ? answer.reason
                             : fmt::format("{}: {}", member.name, answer.reason));
    }
  }

  // A member made something wrong, or threw: told in a note, and the rest goes on.
  void fail(const std::string& fault) {
    if (PLACEWRIGHT_DEBUG_CHECKS) throw WrongPlan(fault);
    control_.note(fault);
  }

  [[nodiscard]] bool settled() const {
    return best_.status() == Status::optimal || best_.proved_infeasible;
  }
  [[nodiscard]] const Answer& answer() const { return best_; }
  // Seconds to keep for the check of the next plan.
  [[nodiscard]] double longest_check() const { return longest_check_; }

  Answer finish() {
    take_bound_of_problem();
    if (best_.plan) return std::move(best_);
    if (!wrong_plan_.empty() && !best_.proved_infeasible) throw WrongPlan(wrong_plan_);
    best_.reason = best_.proved_infeasible ? reasons_.back()
                   : reasons_.empty()      ? "no planner could be run in the time given"
                                           : fmt::format("{}", fmt::join(reasons_, "; "));
    return std::move(best_);
  }

 private:
  bool is_right(const PlannerEntry& member, const Plan& plan) {
    const auto begin = Control::Clock::now();
    const std::string fault = fault_of_plan(problem_, member.name, plan);
    const std::chrono::duration<double> taken = Control::Clock::now() - begin;
    longest_check_ = std::max(longest_check_, taken.count());
    if (fault.empty()) return true;
    fail(fault);
    if (wrong_plan_.empty()) wrong_plan_ = fault;
    return false;
  }

  const Problem& problem_;
  Control& control_;
  Answer best_;
  std::vector<std::string> reasons_;
  std::string wrong_plan_;  // what was wrong with the first one; empty: none was
  double longest_check_;
  bool bound_taken_ = false;
};

// The member's answer; what it throws becomes a note.
void run_member(const Problem& problem, const PlannerEntry& member, Control& part, Control& whole,
                Best& best) {
  try {
    best.add(member, plan_within_memory(problem, member, Settings{member.options}, part));
  } catch (const WrongPlan&) {
    throw;  // debug builds only: `fail` says so
  } catch (const std::bad_alloc&) {
    whole.note(fmt::format("planner '{}' ran out of memory", member.name));
  } catch (const std::exception& error) {
    best.fail(fmt::format("planner '{}' failed: {}", member.name, error.what()));
  }
  for (const std::string& note : part.notes()) whole.note(note);
}

Answer run_all(const Problem& problem, const std::vector<const PlannerEntry*>& members,
               Control& control) {
  Best best(problem, control);
  double longest_instant = 0;
  bool quick_plan = false;  // the best so far was found by a quick planner of our own
  double claims = 0;
  for (const PlannerEntry* member : members) claims += claim(*member, problem);
  for (const PlannerEntry* next : members) {
    const PlannerEntry& member = *next;
    const bool instant = member.effort == Effort::instant;
    if (!instant) best.take_bound_of_problem();
    const double left = control.remaining() - best.longest_check();
    // There is a plan whatever the limit, where an instant planner has one.
    const bool needed = instant && !best.answer().plan;
    const double beyond = solves_at_once(member, problem)
                              ? kSmallShare * std::min(kTinySeconds, left + kTinySeconds)
                              : 0;
    if (best.settled() || control.interrupted()) break;
    if (left <= 0 && beyond <= 0 && !needed) continue;
    // They are not interrupted, and the next takes about as long as the last.
    if (instant && !needed && left < longest_instant) continue;
    const double begin = control.elapsed();
    double share = claim(member, problem) / claims;
    if (instant) share = 1;
    if (member.strength == Strength::exact && problem.op_count() <= kSmallOps) {
      share = std::max(share, kSmallShare);
    }
    if (member.effort == Effort::quick) {
      share = std::max(share, quick_share(member, quick_plan, begin, left));
    }
    claims -= claim(member, problem);
    Control part = part_of(control, member, left * share, beyond);
    if (best.answer().plan) part.start = &*best.answer().plan;
    run_member(problem, member, part, control, best);
    quick_plan = quick_plan || (turn(member) == 1 && best.answer().found_by == member.name);
    if (instant) longest_instant = std::max(longest_instant, control.elapsed() - begin);
    control.report(best.answer().value(), best.answer().certificate.lower_bound);
  }
  return best.finish();
}

}  // namespace

std::vector<const PlannerEntry*> in_order_of_effort(std::vector<const PlannerEntry*> planners) {
  std::stable_sort(
      planners.begin(), planners.end(),
      [](const PlannerEntry* a, const PlannerEntry* b) { return turn(*a) < turn(*b); });
  return planners;
}

PlannerEntry portfolio(const Registry& members) {
  // The planner outlives the registry it was made from. Published searches that take any time given
  // are for comparison only.
  Registry chosen;
  for (const PlannerEntry& member : members.entries()) {
    if (member.role != Role::published || member.effort != Effort::anytime) chosen.add(member);
  }
  const auto own = std::make_shared<const Registry>(std::move(chosen));
  PlannerEntry entry;
  entry.name = "auto";
  entry.summary = "runs every planner that fits within the budget: best plan, best bound";
  entry.effort = Effort::portfolio;
  entry.knows_sharing = true;
  for (const Objective objective : {Objective::throughput, Objective::call_latency,
                                    Objective::latency, Objective::total_completion}) {
    const auto& entries = own->entries();
    const bool served =
        std::any_of(entries.begin(), entries.end(),
                    [&](const PlannerEntry& member) { return member.serves(objective); });
    if (served) entry.objectives.push_back(objective);
  }
  entry.refuses = [own](const Problem& problem) {
    return own->fitting(problem).empty() ? std::string{"no other planner supports this problem"}
                                         : std::string{};
  };
  entry.plan = [own](const Problem& problem, const Settings&, Control& control) {
    std::vector<const PlannerEntry*> fitting = own->fitting(problem);
    std::erase_if(fitting, [&](const PlannerEntry* member) {
      return member->worth_its_time && !member->worth_its_time(problem);
    });
    return run_all(problem, in_order_of_effort(std::move(fitting)), control);
  };
  return entry;
}

Registry planning_registry() {
  Registry registry = standard_registry();
  registry.add(portfolio(registry));
  return registry;
}

}  // namespace placewright
