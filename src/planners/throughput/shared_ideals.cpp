// shared-ideals: the best contiguous pipeline on sets of cores, with proof.
//
// For devices that are nested or disjoint sets of cores in one memory: how many stages, how wide
// each, who takes turns with whom on sets inside each other, and how many replicas, over all
// down-sets of the graph (shared_ideal_program.h). A run asks whether any pipeline is below a
// cutoff. One that finds none raises the bound; one that finds a pipeline lowers the value. Cutoffs
// go up from the bound of the problem, and labels are few at first, so that bounds come early, and
// four times as many in each round, until none is merged: then the best pipeline is found and
// proved. A path that merged labels suggest gives an order of the graph along which a pipeline is
// looked for.
//
// Down-sets are listed up to `ideal-limit`; of a graph with more of them the planner gives the best
// pipeline along a few linear orders, and the bound of the problem. With replicas the period may be
// longer than the largest sum of loads on a core, on which the bound rests, so a gap may stay.
//
// Time: some seconds for the 60 fused groups of a CNN on the sets of 2 or 4 cores. Memory: 120 to
// 310 bytes for each label, by the number of cores, up to 3 million and what the budget allows.

#include <algorithm>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "evaluate/pipeline.h"
#include "planners/bound_of_problem.h"
#include "planners/methods/contiguous_search.h"
#include "planners/throughput/shared_ideal_program.h"
#include "planners/throughput/shared_program.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

constexpr double kClose = 1e-9;        // relative: closer to the best plan than this is no better
constexpr double kProved = 4e-9;       // the same of a bound, which a proof is made smaller by
constexpr double kFirstStep = 5e-3;    // of the bound, by which a cutoff lies above it
constexpr double kLonger = 1.5;        // the next step, where none was found
constexpr double kLongestStep = 0.01;  // of the value: runs far above the least one take long
constexpr double kSmaller = 4;         // the next step, where a path was found
constexpr double kLookAhead = 4;       // steps for which the energy of the rest is worked out
constexpr double kFarAhead =
    1.03;  // worked out for longer stages than this, it is worth doing again
constexpr double kSmallGap = 5e-4;     // at which a run asks for anything better than the best plan
constexpr double kRoundEnds = 4e-3;    // gap that merged labels are left to wider rounds at
constexpr double kNothingLeft = 1e-7;  // the same where none was merged
constexpr std::size_t kWider = 4;
constexpr std::size_t kLinearWidth = 16;

class SharedIdealSearch {
 public:
  SharedIdealSearch(const Problem& problem, const Settings& settings, Control& control)
      : problem_(problem),
        control_(control),
        model_(contiguous_model(problem)),
        sets_(CoreSets::of(model_)),
        limit_(static_cast<std::size_t>(settings.integer("ideal-limit"))),
        first_width_(static_cast<std::size_t>(settings.integer("labels"))),
        certificate_(bound_of_problem(problem, control)),
        highest_(highest_cutoff(model_) * static_cast<double>(problem.device_count())) {}

  Answer run() {
    take_starts();
    if (!sets_) {
      why_ = CoreSets::refuses(problem_);
      return answer();
    }
    if (!best_) search_along_orders();
    if (!settled() && !search_all()) search_along_orders();
    return answer();
  }

 private:
  [[nodiscard]] double value() const { return best_ ? best_->value : kInfinity; }
  [[nodiscard]] double bound() const { return certificate_.lower_bound; }
  [[nodiscard]] bool settled() const { return bound() >= value() * (1 - kProved); }

  void take(const Plan& plan) {
    if (!(plan.value < value()) || !keeps_rules(problem_, plan)) return;
    best_ = plan;
    control_.report(*best_, bound());
  }

  void take_starts() {
    if (control_.start != nullptr) take(*control_.start);
    if (auto plan = shared_program(problem_, blocks_of(problem_), control_)) take(*plan);
  }

  void raise_bound(double proved) {
    if (proved <= bound()) return;
    certificate_ = {std::min(proved, value()), "program over ideals and cores"};
    control_.report(value(), bound());
  }

  // The best stages whose borders are prefixes of the orders, or nearly.
  void search_along(const std::vector<std::vector<std::uint32_t>>& orders) {
    const IdealFamily family = IdealFamily::prefixes(model_, orders, control_);
    if (family.size() < 2 || control_.should_stop()) return;
    SharedIdeals ideals(family, *sets_);
    for (;;) {
      if (!ideals.look_below(std::min(highest_, value()), control_)) return;
      const SharedRun run =
          shared_split(ideals, std::min(highest_, value() * (1 - kClose)), kLinearWidth, control_);
      if (!run.stages) return;
      const double before = value();
      take(pipeline_plan(problem_, *run.stages));
      if (!(value() < before)) return;
    }
  }

  void search_along_orders() { search_along(linear_orders(model_, 2, control_.budget().seed)); }

  // False: there are too many down-sets to look at all.
  bool search_all() {
    const WorkWindow everything{0, model_.total_work()};
    const auto family = IdealFamily::all_ideals(model_, {&everything, 1}, limit_, control_);
    if (!family) {
      why_ = control_.should_stop() ? control_.stop_reason()
                                    : fmt::format("more than {} ideals", limit_);
      return false;
    }
    why_ =
        control_.cannot_afford(seconds_of_shared_ideals(*family), bytes_of_shared_ideals(*family));
    if (!why_.empty()) return false;
    SharedIdeals ideals(*family, *sets_);
    for (std::size_t width = first_width_; search_with(ideals, width); width *= kWider) {
    }
    return true;
  }

  // True: a round with more labels may find or prove more.
  bool search_with(SharedIdeals& ideals, std::size_t width) {
    double high = highest_or_value();
    double step = std::max(kFirstStep * bound(), kSmallGap * high);
    double enough = 0;  // gap between the bound and a path at which the round ends
    while (!settled()) {
      if (high < highest_or_value() && high - bound() <= enough * high) return enough == kRoundEnds;
      const double cutoff = next_cutoff(high, step);
      if (!look_below(ideals, cutoff, cutoff + kLookAhead * step)) return stopped();
      const SharedRun run = shared_split(ideals, cutoff, width, control_);
      if (!run.complete) return stopped();
      if (run.path.empty()) {
        raise_bound(safe_search(cutoff));
        if (cutoff >= highest_ * (1 - 2 * kClose)) return no_split();
        step = std::min(kLonger * step, kLongestStep * high);
        continue;
      }
      follow(run, ideals.family());
      high = std::min(cutoff, highest_or_value());
      step /= kSmaller;
      enough = run.merged ? kRoundEnds : kNothingLeft;
    }
    return false;
  }

  [[nodiscard]] double highest_or_value() const { return std::min(highest_, value()); }

  // Above the bound by a step; close to the best plan, whether there is anything better.
  [[nodiscard]] double next_cutoff(double high, double step) const {
    if (high - bound() <= kSmallGap * high && high == highest_or_value())
      return high * (1 - kClose);
    if (high == highest_or_value() && bound() + step >= high) return high * (1 - kClose);
    return std::min(bound() + step, (bound() + high) / 2);
  }

  // What the rest takes is worked out for cutoffs up to some more than the one in hand.
  bool look_below(SharedIdeals& ideals, double cutoff, double most) {
    const double ahead = std::min(highest_or_value(), most);
    const bool known = cutoff <= looked_below_ && looked_below_ <= kFarAhead * cutoff;
    if (known) return true;
    looked_below_ = std::max(cutoff, ahead);
    return ideals.look_below(looked_below_, control_);
  }

  bool stopped() {
    why_ = control_.should_stop() ? control_.stop_reason() : "too many labels";
    return false;
  }

  bool no_split() {
    infeasible_ = !best_;
    return false;
  }

  void follow(const SharedRun& run, const IdealFamily& family) {
    if (run.stages) {
      take(pipeline_plan_below(problem_, *run.stages, value()));
      return;
    }
    std::vector<std::uint32_t> order;
    for (std::size_t i = 1; i < run.path.size(); ++i) {
      const auto blocks = family.difference(run.path[i], run.path[i - 1]);
      order.insert(order.end(), blocks.begin(), blocks.end());
    }
    search_along({order});
  }

  Answer answer() {
    Answer answer;
    answer.certificate = certificate_;
    answer.certificate.lower_bound = std::min(bound(), value());
    answer.plan = std::move(best_);
    if (answer.plan) return answer;
    answer.proved_infeasible = infeasible_;
    answer.reason = infeasible_ ? "no contiguous split of the ops fits the sets of cores"
                                : fmt::format("no contiguous split was found ({})", why_);
    return answer;
  }

  const Problem& problem_;
  Control& control_;
  StageModel model_;
  std::optional<CoreSets> sets_;
  std::size_t limit_;
  std::size_t first_width_;
  Certificate certificate_;
  double highest_;           // above every plan
  double looked_below_ = 0;  // for which the energy of the rest is worked out
  std::optional<Plan> best_;
  bool infeasible_ = false;
  std::string why_;
};

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  if (auto infeasible = too_much_for_one_memory(problem)) return *infeasible;
  return SharedIdealSearch(problem, settings, control).run();
}

}  // namespace

PlannerEntry shared_ideals() {
  return PlannerEntry{
      .name = "shared-ideals",
      .summary =
          "the best contiguous pipeline on nested sets of cores: a program over down-sets "
          "and cores",
      .objectives = {Objective::throughput},
      .strength = Strength::exact,
      .knows = kSharedIdealsKnow -
               Features{Feature::free_sets, Feature::convex_sets, Feature::peak_memory},
      .options = {{"ideal-limit", "down-sets to hold at most", std::int64_t{50'000}, 100, 1e7},
                  {"labels", "labels of a down-set in the first round, before some are merged",
                   std::int64_t{8}, 1, 1e6}},
      .refuses = refuses_shared_ideals,
      .plan = plan};
}

}  // namespace placewright
