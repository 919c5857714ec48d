// calls-search: simulated annealing over assignments to calls (annealing.h), from the best plan
// known.
//
// Starts from the given plan, else from the best of the greedy fill, the chain program, everything
// on the host, and a packing that fits memory. With several threads as many annealings run side by
// side, each with its own seed, and all go on from the best after each round. It ends at the
// budget, or when a lower bound is met. Where devices share resources, calls have them in the order
// in which they become ready (evaluate/calls.h): plans in which one waits for a later one are not
// found.

#include <algorithm>

#include "bounds/rounding.h"
#include "evaluate/placement_plan.h"
#include "machine/fan_out.h"
#include "planners/bound_of_problem.h"
#include "planners/calls/annealing.h"
#include "planners/calls/calls.h"
#include "planners/calls/walks.h"
#include "planners/exchange.h"
#include "planners/methods/call_filling.h"
#include "planners/methods/packing.h"

namespace placewright {
namespace {

using namespace calls;

// Evaluations before the annealings are joined and the clock is looked at: of small graphs so many,
// of large ones what takes some milliseconds.
constexpr std::uint64_t kRound = 4096;
constexpr std::uint64_t kOpsOfRound = 8'000'000;
constexpr std::size_t kChainIdeals = 1000;

void keep_better(std::optional<Plan>& best, std::optional<Plan> candidate) {
  if (candidate && (!best || candidate->value < best->value)) best = std::move(candidate);
}

std::optional<Plan> first_plan(const Problem& problem, Control& control) {
  if (control.start != nullptr) return *control.start;
  CallEvaluator evaluator(problem);
  std::optional<Plan> best;
  keep_better(best, filled_calls(problem));
  keep_better(best, plan_of_slots(problem, evaluator, all_on_host(problem)));
  keep_better(best, best_chain(problem, kChainIdeals, 1, control));
  if (best) return best;
  Packing packing = pack(problem, PackingCosts(problem), control);
  if (packing.placement) best = plan_of_placement(problem, *packing.placement);
  return best;
}

class Search {
 public:
  Search(const Problem& problem, Control& control, Plan start)
      : problem_(problem),
        control_(control),
        evaluator_(problem),
        bound_(bound_of_problem(problem, control)),
        best_(std::move(start)) {
    const auto& budget = control.budget();
    const Slots slots = slots_of_plan(problem, evaluator_, best_);
    for (int i = 0; i < std::max(1, budget.threads); ++i) {
      workers_.emplace_back(problem, budget.seed + static_cast<std::uint64_t>(i) * 7919);
      workers_.back().start(slots);
    }
    steps_left_ = budget.steps;
    round_ = std::clamp<std::uint64_t>(kOpsOfRound / (problem.op_count() + 1), 1, kRound);
  }

  Answer run() {
    while (best_.value > bound_.lower_bound * (1 + kSearchRounding) && steps_left_ > 0) {
      const std::uint64_t share = steps_left_ / workers_.size();
      const std::uint64_t some = std::clamp<std::uint64_t>(share, 1, round_);
      run_round(some);
      take_from_others();
      const std::uint64_t done = some * workers_.size();
      steps_left_ -= std::min(steps_left_, done);
      if (control_.should_stop(done)) break;
    }
    return {best_, bound_};
  }

 private:
  void run_round(std::uint64_t evaluations) {
    FanOut{.threads = control_.budget().threads}.run(workers_.size(), [&](std::size_t number) {
      // Where there are fewer threads than annealings, some have their turn after the time is over.
      if (control_.remaining() > 0 && !control_.interrupted()) workers_[number].run(evaluations);
    });
    const auto& leader = *std::ranges::min_element(workers_, {}, &Annealing::best_value);
    if (leader.best_value() >= best_.value) return;
    auto plan = evaluator_.plan(leader.best());
    if (!plan || plan->value >= best_.value) return;
    best_ = std::move(*plan);
    control_.report(best_, bound_.lower_bound);
  }

  // All annealings go on from a better plan of a planner that runs beside this one.
  void take_from_others() {
    const auto other = better_elsewhere(control_.exchange, best_.value);
    if (!other) return;
    best_ = *other;
    const Slots slots = slots_of_plan(problem_, evaluator_, best_);
    for (Annealing& worker : workers_) worker.start(slots);
  }

  const Problem& problem_;
  Control& control_;
  CallEvaluator evaluator_;
  Certificate bound_;
  Plan best_;
  std::vector<Annealing> workers_;
  std::uint64_t steps_left_ = 0;
  std::uint64_t round_ = kRound;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  std::optional<Plan> start = first_plan(problem, control);
  if (start) return Search(problem, control, std::move(*start)).run();
  Answer answer;
  answer.reason = "no plan in calls was found to start from: memory is nearly full";
  return answer;
}

}  // namespace

PlannerEntry calls_search() {
  return PlannerEntry{.name = "calls-search",
                      .summary = "simulated annealing over calls from the best quick plan",
                      .objectives = {Objective::call_latency},
                      .effort = Effort::anytime,
                      .knows = kCommonAndSharing,
                      .uses_threads = true,
                      .plan = plan};
}

}  // namespace placewright
