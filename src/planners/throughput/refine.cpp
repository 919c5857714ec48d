// refine: good pipelines that need not be contiguous, with a bound that does not assume contiguity
// either.
//
// Starts from the better of the best contiguous plan and a local search's, then annealing
// (annealing.h), each cooling about as long as those before it together. The configuration bound
// (configuration_bound.h) often proves the plan, and is asked early on; where it does not, CP-SAT
// on the integer program (placement_program.h) has the rest of the time for both plan and bound.

#include <cstdint>
#include <string>

#include "planners/methods/descent.h"
#include "planners/methods/incumbent.h"
#include "planners/methods/placement_program.h"
#include "planners/methods/program_solvers.h"
#include "planners/methods/stage_model.h"
#include "planners/throughput/annealing.h"
#include "planners/throughput/configuration_bound.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

constexpr double kStartShare = 0.05;  // of the time, for each of the plans to start from
constexpr std::int64_t kRandomStarts = 10;
constexpr double kAnnealingShare = 0.55;  // of what is left then
constexpr double kEarlyBoundShare = 0.3;  // of what is left when the bound is asked
constexpr double kLateBoundShare = 0.6;
constexpr double kCoolings[] = {1.0 / 16, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2};
constexpr std::size_t kCoolingsBeforeBound = 2;
constexpr std::size_t kMostProgramChoices = 40'000;  // blocks x devices; beyond, CP-SAT is hopeless

class Refinement {
 public:
  Refinement(const Problem& problem, const Settings& settings, Control& control)
      : problem_(problem),
        prove_(settings.flag("prove")),
        control_(control),
        incumbent_(problem, control),
        model_(problem, program_blocks(problem)) {
    incumbent_.raise_bound(model_.work_bound(), "work");
  }

  Answer run() {
    incumbent_.take_contiguous_plan(2 * kStartShare);
    if (!incumbent_.settled()) take_descent();
    if (incumbent_.plan()) anneal();
    ProgramOutcome outcome;
    if (prove_) bound(kLateBoundShare);
    if (prove_ && !done() && program_is_small()) {
      outcome = solve_with_cp_sat(problem_, incumbent_, control_);
    } else if (!incumbent_.plan()) {
      outcome.reason = control_.should_stop() ? control_.stop_reason() : "no plan to start from";
    }
    return incumbent_.answer(outcome.reason, outcome.infeasible);
  }

 private:
  void take_descent() {
    Control part = control_.part("refine", control_.remaining() * kStartShare);
    Incumbent found(problem_, part);
    descend_from_random_pipelines(problem_, kRandomStarts, found, part);
    if (found.plan()) incumbent_.offer(found.plan()->placement);
  }

  bool done() { return incumbent_.settled() || control_.should_stop(); }

  [[nodiscard]] bool program_is_small() const {
    return model_.block_count() * problem_.device_count() <= kMostProgramChoices;
  }

  void anneal() {
    const AnnealingUnits units(problem_);
    const double seconds = control_.remaining() * (prove_ ? kAnnealingShare : 1);
    const auto most_moves = static_cast<double>(short_cooling(units));
    std::uint64_t seed = control_.budget().seed;
    std::size_t coolings = 0;
    for (const double share : kCoolings) {
      if (done()) return;
      incumbent_.take_from_others();
      cool(problem_, units, incumbent_, control_, seconds * share,
           static_cast<std::uint64_t>(most_moves * share / kCoolings[0]), seed++);
      if (prove_ && ++coolings == kCoolingsBeforeBound) bound(kEarlyBoundShare);
    }
  }

  // Nothing new comes of it where an earlier run for the same plan came to its end.
  void bound(double share) {
    if (!incumbent_.plan() || done() || incumbent_.value() == bounded_for_) return;
    Control part = control_.part("refine", control_.remaining() * share);
    incumbent_.raise_bound(
        configuration_bound(model_, incumbent_.bound(), incumbent_.value(), part),
        "sets of blocks within a load");
    if (part.remaining() > 0) bounded_for_ = incumbent_.value();
  }

  const Problem& problem_;
  bool prove_;
  Control& control_;
  Incumbent incumbent_;
  StageModel model_;
  double bounded_for_ = 0;
};

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  return Refinement(problem, settings, control).run();
}

}  // namespace

PlannerEntry refine() {
  return PlannerEntry{
      .name = "refine",
      .summary =
          "pipelines that need not be contiguous: annealing, the configuration bound, CP-SAT",
      .objectives = {Objective::throughput},
      .effort = Effort::anytime,
      .share = 4,
      .knows = kProgramKnows - Features{Feature::joint_sets, Feature::convex_sets},
      .options = {{"prove", "give half of the time to bounds and CP-SAT", true}},
      .plan = plan};
}

}  // namespace placewright
