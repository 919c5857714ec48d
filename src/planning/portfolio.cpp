#include "planning/portfolio.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bounds/bounds.h"
#include "planning/checked_plan.h"
#include "planning/peak_memory.h"

namespace placewright {
namespace {

// A quick planner ends by itself; one that needs this much of what is left is stopped.
constexpr double kQuickShare = 0.25;

int turn(const PlannerEntry& entry) {
  if (entry.effort == Effort::portfolio) return 3;
  if (entry.effort == Effort::anytime && entry.strength == Strength::heuristic) return 2;
  return entry.strength == Strength::exact ? 1 : 0;
}

// The best of what the members have answered so far.
class Best {
 public:
  Best(const Problem& problem, const Plan* start) : problem_(problem) {
    if (start != nullptr) best_.plan = *start;
    best_.certificate = best_lower_bound(problem);
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
        throw WrongPlan(fmt::format("planner '{}' says that no plan exists, and there is one: {}",
                                    member.name, answer.reason));
      }
      best_.proved_infeasible |= answer.proved_infeasible;
      reasons_.push_back(answer.proved_infeasible
                             ? answer.reason
                             : fmt::format("{}: {}", member.name, answer.reason));
    }
  }

  [[nodiscard]] bool settled() const {
    return best_.status() == Status::optimal || best_.proved_infeasible;
  }
  [[nodiscard]] const Answer& answer() const { return best_; }

  Answer finish() {
    if (best_.plan) return std::move(best_);
    if (!first_fault_.empty()) throw WrongPlan(first_fault_);
    best_.reason = best_.proved_infeasible ? reasons_.back()
                   : reasons_.empty()      ? "no planner could be run in the time given"
                                           : fmt::format("{}", fmt::join(reasons_, "; "));
    return std::move(best_);
  }

 private:
  bool is_right(const PlannerEntry& member, const Plan& plan) {
    const std::string fault = fault_of_plan(problem_, member.name, plan);
    if (fault.empty()) return true;
    if (PLACEWRIGHT_DEBUG_CHECKS) throw WrongPlan(fault);
    if (first_fault_.empty()) first_fault_ = fault;
    return false;
  }

  const Problem& problem_;
  Answer best_;
  std::vector<std::string> reasons_;
  std::string first_fault_;
};

Answer run_all(const Problem& problem, const std::vector<const PlannerEntry*>& members,
               Control& control) {
  Best best(problem, control.start);
  double claims = 0;
  for (const PlannerEntry* member : members) claims += member->share;
  for (const PlannerEntry* next : members) {
    if (best.settled() || control.interrupted() || control.remaining() <= 0) break;
    const PlannerEntry& member = *next;
    double share = member.share / claims;
    if (member.effort == Effort::quick) share = std::max(share, kQuickShare);
    Control part = control.part(member.name, control.remaining() * share);
    claims -= member.share;
    if (best.answer().plan) part.start = &*best.answer().plan;
    best.add(member, plan_within_memory(problem, member, Settings{member.options}, part));
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
  // The planner outlives the registry it was made from.
  const auto own = std::make_shared<const Registry>(members);
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
    return own->fitting(problem).empty() ? std::string{"no other planner fits this problem"}
                                         : std::string{};
  };
  entry.plan = [own](const Problem& problem, const Settings&, Control& control) {
    std::vector<const PlannerEntry*> chosen = in_order_of_effort(own->fitting(problem));
    std::erase_if(chosen, [](const PlannerEntry* member) {
      return member->role == Role::published && member->effort == Effort::anytime;
    });
    return run_all(problem, chosen, control);
  };
  return entry;
}

Registry planning_registry() {
  Registry registry = standard_registry();
  registry.add(portfolio(registry));
  return registry;
}

}  // namespace placewright
