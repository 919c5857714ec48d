#include "planning/portfolio.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "planning/members.h"
#include "planning/side_by_side.h"
#include "planning/time_shares.h"

namespace placewright {
namespace {

// In turn, in the calling thread.
class InTurn {
 public:
  InTurn(const Problem& problem, Control& control)
      : problem_(problem), control_(control), members_(problem, control) {}

  Answer run(const std::vector<const PlannerEntry*>& entries) {
    for (const PlannerEntry* entry : entries) claims_ += claim(*entry, problem_);
    for (const PlannerEntry* entry : entries) {
      if (entry->effort != Effort::instant) members_.take_bound_of_problem();
      if (members_.settled() || control_.interrupted()) break;
      take_turn(*entry);
    }
    return members_.finish();
  }

 private:
  void take_turn(const PlannerEntry& member) {
    const bool instant = member.effort == Effort::instant;
    const double left = control_.remaining() - members_.longest_check();
    // There is a plan whatever the limit, where an instant planner has one.
    const bool needed = instant && !members_.exchange()->best();
    const double beyond = seconds_beyond(member, problem_, left);
    if (left <= 0 && beyond <= 0 && !needed) return;
    // They are not interrupted, and the next takes about as long as the last.
    if (instant && !needed && left < longest_instant_) return;
    const double begin = control_.elapsed();
    const Moment moment{begin, left, quick_plan_, claims_};
    const double seconds = left * share(member, problem_, moment);
    claims_ -= claim(member, problem_);
    Budget budget = control_.budget();
    budget.seconds = std::max({0.0, std::min(seconds, control_.remaining()), beyond});
    Control part = control_.beside(member.name, budget, control_.interruption());
    members_.run(member, part);
    quick_plan_ = quick_plan_ || (turn(member) == Turn::own_quick &&
                                  members_.exchange()->found_by() == member.name);
    if (instant) longest_instant_ = std::max(longest_instant_, control_.elapsed() - begin);
    control_.report(members_.exchange()->value(), members_.exchange()->bound());
  }

  const Problem& problem_;
  Control& control_;
  Members members_;
  double claims_ = 0;
  double longest_instant_ = 0;
  bool quick_plan_ = false;
};

// One after the other where only one thread is given, or where the answer must not depend on which
// of two is faster.
Answer run_all(const Problem& problem, const std::vector<const PlannerEntry*>& members,
               Control& control) {
  const bool repeatable = control.budget().steps < std::numeric_limits<std::uint64_t>::max();
  if (control.budget().threads > 1 && !repeatable) {
    return run_side_by_side(problem, members, control);
  }
  Budget budget = control.budget();
  budget.threads = 1;
  Control alone = control.beside("auto", budget, control.interruption());
  alone.start = control.start;
  Answer answer = InTurn(problem, alone).run(members);
  for (const std::string& note : alone.notes()) control.note(note);
  return answer;
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
  entry.knows = kEveryFeature;
  for (const Objective objective : every_objective()) {
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
