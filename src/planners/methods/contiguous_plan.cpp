#include "planners/methods/contiguous_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "bounds/rounding.h"
#include "planners/methods/boundary_search.h"
#include "planners/methods/contiguous_search.h"
#include "planners/methods/stage_annealing.h"
#include "planners/methods/stage_program.h"

namespace placewright::throughput {
namespace {

constexpr double kFirstExcess = 5e-4;
constexpr std::size_t kLargeFamily = 20000;
constexpr double kSmallGap = 2e-4;
constexpr std::size_t kMostProgramChoices = 20'000;  // blocks x devices; beyond, it is hopeless
constexpr double kFirstProgramShare = 0.2;
constexpr double kProgramShare = 0.75;  // ... of the time that is left
constexpr double kBoundaryShare = 0.6;
constexpr double kBoundaryStep = 0.0025;         // of the bound
constexpr std::uint64_t kShortAnnealing = 1000;  // moves for each block
constexpr std::uint64_t kLongAnnealing = 200'000;
constexpr double kAnnealingShare = 0.6;
constexpr double kClose = 1e-9;  // relative: closer to the incumbent than this is no better

constexpr const char* kOverIdeals = "program over ideals";

class Search {
 public:
  Search(const Problem& problem, const ContiguousPlan& options, Control& control)
      : control_(control),
        model_(contiguous_model(problem)),
        limit_(options.ideal_limit),
        wide_from_(options.wide_from),
        bound_(model_.work_bound()) {
    if (control.start != nullptr) best_ = *control.start;
  }

  Answer run() {
    keep(best_linear_split(model_, 2, bound_, control_).split);
    control_.report(value(), bound_);
    const double highest = highest_cutoff(model_);
    const double base = bound_;
    double excess = kFirstExcess;
    while (!settled_ && bound_ < value() * (1 - kClose)) {
      const double most = std::min(highest, value() * (1 - kClose));
      double cutoff = excess > kLargeExcess ? most : std::min(most, base * (1 + excess));
      if (cutoff <= bound_ || cutoff == most) cutoff = between(most);
      excess *= 2;
      if (!raise(cutoff, cutoff == most)) break;
      settled_ |= bound_ >= highest;
      control_.report(value(), bound_);
    }
    return answer();
  }

 private:
  [[nodiscard]] double value() const { return best_ ? best_->value : kInfinity; }

  void keep(const std::optional<Split>& split) {
    if (!split) return;
    std::optional<Plan> plan = plan_of_split(model_, *split);
    if (!plan || plan->value >= value()) return;
    best_ = std::move(plan);
    control_.report(*best_, bound_);
  }

  // Large families are cheap to ask whether any plan is below a cutoff, and costly to ask for the
  // best: the gap is halved first.
  [[nodiscard]] double between(double most) const {
    if (latest_size_ < kLargeFamily || most - bound_ < kSmallGap * most) return most;
    return (bound_ + most) / 2;
  }

  // Looks for a plan below the cutoff, and proves that there is none. `best`: for the best one,
  // else for any. False: too large, or no time left.
  bool raise(double cutoff, bool best) {
    const std::vector<WorkWindow> windows = work_windows(model_, cutoff);
    const bool may_turn = wide_from_ > 0 && wide_from_ < limit_ && !program_tried_;
    auto family =
        IdealFamily::all_ideals(model_, windows, may_turn ? wide_from_ : limit_, control_);
    if (!family && may_turn && !control_.should_stop()) {
      program_tried_ = true;
      if (search_wide()) return true;
      family = IdealFamily::all_ideals(model_, windows, limit_, control_);
    }
    if (!family) return give_up();
    latest_size_ = family->size();
    const bool exactly = best || latest_size_ < kLargeFamily;
    const double enough = exactly ? bound_ : cutoff * (1 - kClose);
    const ProgramResult result = best_split(*family, cutoff, enough, control_);
    if (!result.complete) return give_up();
    method_ = kOverIdeals;
    if (!result.split) {
      bound_ = std::max(bound_, cutoff);
      return true;
    }
    keep(result.split);
    if (exactly) bound_ = std::max(bound_, safe_sum(result.split->value));
    settled_ = exactly || !model_.exact();
    return true;
  }

  // For graphs with more ideals than can be listed. The constraint program comes first: optima far
  // above the work bound are beyond the search over boundaries, and some are proved in a moment.
  // False: nothing there serves the model.
  bool search_wide() {
    const bool has_program = program_serves();
    const bool has_search = refuses_boundary_search(model_).empty();
    if (has_program) run_stage_program(has_search ? kFirstProgramShare : kProgramShare);
    if (settled_) return true;
    if (!best_) return has_program;
    anneal(kShortAnnealing, 1);
    if (!has_search) return has_program;
    search_boundaries();
    if (settled_) return true;
    anneal(kLongAnnealing, kAnnealingShare);
    if (has_program) run_stage_program(kProgramShare);
    return true;
  }

  // `moves` for each block, within a share of the time.
  void anneal(std::uint64_t moves, double share) {
    if (!best_ || model_.max_replicas() > 1) return;
    Control part = control_.part("ideals", control_.remaining() * share);
    std::optional<Plan> better = anneal_stages(model_, *best_, moves * model_.block_count(), part);
    if (!better || better->value >= value()) return;
    best_ = std::move(better);
    control_.report(*best_, bound_);
  }

  // Asks for plans within a value that rises from the bound.
  void search_boundaries() {
    Control part = control_.part("ideals", control_.remaining() * kBoundaryShare);
    const double step = bound_ * kBoundaryStep;
    while (bound_ < value() * (1 - kClose)) {
      const double most = value() * (1 - kClose);
      const double cutoff = most - bound_ > 2 * step           ? bound_ + step
                            : most - bound_ > kSmallGap * most ? (bound_ + most) / 2
                                                               : most;
      const ProgramResult result = split_within(model_, cutoff, part);
      if (!result.complete) return;
      keep(result.split);
      if (result.split && !model_.exact()) return;
      if (result.split) continue;
      bound_ = std::max(bound_, safe_search(cutoff));
      method_ = "search over boundaries between stages";
      control_.report(value(), bound_);
      if (cutoff == most) settled_ = true;
    }
  }

  // Asked late: it loads CP-SAT, which costs more than most problems do.
  [[nodiscard]] bool program_serves() const {
    return model_.block_count() * model_.problem().device_count() <= kMostProgramChoices &&
           refuses_stage_program(model_).empty();
  }

  void run_stage_program(double share) {
    const double highest = best_ ? cutoff_above(value()) : highest_cutoff(model_);
    Control part = control_.part("ideals", control_.remaining() * share);
    const StageProgramResult result =
        solve_stage_program(model_, bound_, highest, best_ ? &*best_ : nullptr, part);
    keep(result.split);
    if (result.infeasible && !best_) {
      bound_ = highest;
    } else if (std::min(result.lower_bound, value()) > bound_) {
      bound_ = std::min(result.lower_bound, value());
      method_ = "constraint program over stages (CP-SAT)";
    }
    settled_ |= best_ && gap(value(), bound_) <= kOptimalGap;
  }

  bool give_up() {
    const bool stopped = control_.should_stop();
    why_ = stopped ? control_.stop_reason()
                   : fmt::format("more than {} ideals are within the windows of work", limit_);
    return false;
  }

  Answer answer() {
    Answer answer;
    answer.certificate = {std::min(bound_, value()), method_};
    answer.plan = std::move(best_);
    if (answer.plan) return answer;
    if (settled_ && bound_ >= highest_cutoff(model_)) {
      answer.proved_infeasible = true;
      answer.reason =
          "no contiguous split of the ops fits the devices: every one leaves some stage without "
          "memory or a device that can run it";
    } else {
      answer.reason = fmt::format("no contiguous split was found ({})",
                                  why_.empty() ? "a link that it needs does not exist" : why_);
    }
    return answer;
  }

  Control& control_;
  StageModel model_;
  std::size_t limit_;
  std::size_t wide_from_;
  double bound_;
  std::optional<Plan> best_;
  bool settled_ = false;
  bool program_tried_ = false;
  std::size_t latest_size_ = 0;
  std::string method_ = kOverIdeals;
  std::string why_;
};

}  // namespace

Answer best_contiguous_plan(const Problem& problem, Control& control,
                            const ContiguousPlan& options) {
  return Search(problem, options, control).run();
}

}  // namespace placewright::throughput
