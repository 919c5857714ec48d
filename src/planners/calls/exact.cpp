// calls-exact: the best plan in calls, with its proof, by a search over ideals.
//
// The problem's ideals are taken in rounds: at most 1,000 of them, then four times as many, and so
// on up to `ideal-limit`, leaving out as few small sources and sinks as that takes (call_graph.h).
// In wide graphs with more ideals than that, rounds over the heaviest ops come before. Each round
// computes the tails (call_ideals.h), which bound every plan, and searches labels with a cutoff
// that grows from the bound (by 0.01 %, 0.1 %, 1 %, ...) to the best plan known: a search that ends
// without a walk proves the cutoff. A walk found becomes a plan of the whole problem; ops left out
// join their neighbours, and a short local search settles what that disturbed.
//
// Exact when nothing is left out, one call per device, no shared weights and unlimited host memory.
// With several calls per device the rounds are first made with one, for a plan to start from. Else
// the walks bound the optimum from below, and the gap says how close the plan is: with several
// calls per device each call is bounded as if on a device of its own. Time: pairs of ideals for
// each round, and labels; `label-limit` bounds memory (about 100 bytes each).
//
// Reference: the ideals are those of J. Tarnawski et al., NeurIPS 2020; bound and search are ours.

#include <algorithm>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "planners/calls/annealing.h"
#include "planners/calls/calls.h"
#include "planners/calls/walks.h"
#include "planners/methods/assignment.h"
#include "planners/methods/call_filling.h"
#include "planners/methods/walk_search.h"

namespace placewright {
namespace {

using namespace calls;

constexpr std::size_t kFirstIdeals = 1000;
constexpr std::size_t kIdealGrowth = 4;
constexpr std::size_t kFirstHeavyIdeals = 250;
constexpr double kWideShare = 0.5;
// Of a cutoff over the bound.
struct Excess {
  double first = 0;
  double growth = 1;
};
constexpr Excess kExcess{1e-4, 10};
constexpr Excess kHeavyExcess{1e-2, 2};
constexpr double kLargestExcess = 1e6;
constexpr std::uint64_t kSettlingEvaluations = 20000;

class Search {
 public:
  Search(const Problem& problem, const Settings& settings, Control& control)
      : problem_(problem),
        control_(control),
        evaluator_(problem),
        ideal_limit_(static_cast<std::size_t>(settings.integer("ideal-limit"))),
        label_limit_(static_cast<std::size_t>(settings.integer("label-limit"))) {
    if (control.start != nullptr) best_ = *control.start;
  }

  Answer run() {
    const int calls = problem_.rules().calls_per_device;
    if (!best_) offer(filled_calls(problem_));
    if (calls > 1) rounds(1);
    rounds(calls);
    if (!settled()) offer(best_chain(problem_, kFirstIdeals, 1, control_));
    return answer();
  }

 private:
  [[nodiscard]] double value() const { return best_ ? best_->value : kInfinity; }
  [[nodiscard]] bool settled() const {
    return infeasible_ || (best_ && bound_ >= safe_search(best_->value));
  }
  [[nodiscard]] CallIdeals::Stop stop() {
    return [this] { return control_.should_stop(); };
  }

  // Whether most of the work is gone when so many sources and sinks are left out that the ideals
  // are within the first limit, and the last limit does not hold all ideals either.
  [[nodiscard]] bool is_wide(const CallIdeals& first) {
    const int calls = problem_.rules().calls_per_device;
    const CallGraph whole = call_graph(problem_, Table<OpId, char>(problem_.op_count(), 1), calls);
    if (first.graph().least_work() >= kWideShare * whole.least_work()) return false;
    // A large graph has too many for sure, and to find out takes long.
    return whole.size() > kFirstIdeals || !CallIdeals::all_of(whole, ideal_limit_, stop());
  }

  // The heaviest ops have few ideals in wide graphs. Their cutoffs rise from what is known, slowly:
  // labels multiply with them.
  void heavy_rounds() {
    std::size_t nodes_before = 0;
    for (std::size_t limit = kFirstHeavyIdeals; limit <= ideal_limit_ && !settled(); limit *= 2) {
      CallIdeals ideals =
          heaviest_ideals(problem_, limit, problem_.rules().calls_per_device, stop());
      if (control_.should_stop()) return;
      if (ideals.graph().size() == nodes_before) continue;
      nodes_before = ideals.graph().size();
      if (!round(ideals, kHeavyExcess, bound_) || ideals.exact()) return;
    }
  }

  void rounds(int calls_per_device) {
    bounding_ = calls_per_device == problem_.rules().calls_per_device;
    std::size_t nodes_before = 0;
    const std::size_t first_limit = std::min(kFirstIdeals, ideal_limit_);
    for (std::size_t limit = first_limit; !settled();) {
      CallIdeals ideals = finest_ideals(problem_, limit, calls_per_device, stop());
      if (control_.should_stop()) break;
      if (bounding_ && limit == first_limit && is_wide(ideals)) heavy_rounds();
      if (settled()) break;
      if (limit == ideal_limit_ || ideals.graph().size() > nodes_before) {
        nodes_before = ideals.graph().size();
        if (!round(ideals, kExcess, 0) || ideals.exact()) break;
      }
      if (limit == ideal_limit_) break;
      limit = std::min(limit * kIdealGrowth, ideal_limit_);
    }
  }

  // Cutoffs rise from the bound of these ideals, or from `known` where that is larger. False: asked
  // to stop, or out of labels.
  bool round(CallIdeals& ideals, const Excess& excesses, double known) {
    const auto bound = ideals.bound(stop());
    if (!bound) return false;
    if (*bound == kInfinity) {
      infeasible_ = bounding_;
      return bounding_;
    }
    raise(*bound);
    const double base = std::max(*bound, known);
    for (double excess = excesses.first; !settled(); excess *= excesses.growth) {
      const double cutoff = excess > kLargestExcess
                                ? value()
                                : std::min(value(), base * (1 + excess) + kSearchRounding);
      // A search just above what is proved costs as much as one up to the best plan.
      if (bounding_ && cutoff < value() && safe_search(cutoff) <= bound_) continue;
      const WalkSearch result = search_walks(ideals, cutoff, label_limit_, stop());
      if (!result.complete) return false;
      if (result.walk) {
        raise(result.walk->value);
        keep(ideals, *result.walk);
        return true;
      }
      raise(cutoff);
      if (cutoff == kInfinity) infeasible_ = bounding_;
      if (cutoff >= value()) return true;
    }
    return true;
  }

  void raise(double bound) {
    bound = safe_search(bound);
    if (!bounding_ || bound <= bound_) return;
    bound_ = bound;
    control_.report(value(), std::min(bound_, value()));
  }

  void keep(const CallIdeals& ideals, const CallWalk& walk) {
    const auto slots = slots_of_walk(problem_, evaluator_, ideals.graph(), walk);
    if (!slots) return;
    offer(plan_of_slots(problem_, evaluator_, *slots));
    if (settled() || !best_) return;
    Annealing annealing(problem_, control_.budget().seed);
    annealing.start(slots_of_plan(problem_, evaluator_, *best_));
    annealing.run(kSettlingEvaluations, control_);
    offer(evaluator_.plan(annealing.best()));
  }

  void offer(std::optional<Plan> plan) {
    if (!plan || plan->value >= value()) return;
    best_ = std::move(plan);
    control_.report(*best_, std::min(bound_, value()));
  }

  Answer answer() {
    Answer answer;
    answer.certificate = {std::min(bound_, value()), "tails and labels over ideals"};
    answer.plan = std::move(best_);
    if (answer.plan) return answer;
    answer.proved_infeasible = infeasible_;
    answer.reason = infeasible_
                        ? "no calls within the accelerators' memory and number cover all ops"
                        : fmt::format("no plan in calls was found ({})",
                                      control_.should_stop() ? control_.stop_reason()
                                                             : "memory is nearly full");
    return answer;
  }

  const Problem& problem_;
  Control& control_;
  CallEvaluator evaluator_;
  std::size_t ideal_limit_;
  std::size_t label_limit_;
  std::optional<Plan> best_;
  double bound_ = 0;
  bool bounding_ = true;  // what is proved now holds for the problem
  bool infeasible_ = false;
};

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  return Search(problem, settings, control).run();
}

}  // namespace

PlannerEntry calls_exact() {
  return PlannerEntry{
      .name = "calls-exact",
      .summary = "best plan in calls with its proof: bounds and labels over ideals",
      .objectives = {Objective::call_latency},
      .strength = Strength::exact,
      .effort = Effort::anytime,
      .options = {{"ideal-limit", "down-sets looked at, at most", std::int64_t{32000}, 2, 1e7},
                  {"label-limit", "partial plans kept, at most", std::int64_t{3000000}, 1, 1e9}},
      .plan = plan};
}

}  // namespace placewright
