// refine: good pipelines that need not be contiguous, with a bound that does not assume contiguity
// either.
//
// Starts from the best contiguous plan, then annealing over colocation groups on the incremental
// evaluator: move a group to another device (often to one of its neighbours'), or swap two groups
// of the busiest device and another. What is minimised is the p-norm of the device loads, p growing
// from 8 to 64: near the maximum, yet a step that only relieves the second busiest device counts.
// The best maximum seen is kept. A third of the time goes to annealing, then the configuration
// bound (configuration_bound.h) often proves the plan; where it does not, CP-SAT on the integer
// program (placement_program.h) has the rest of the time for both.
//
// Memory, pins and support hold throughout. About a million moves per second on some hundred
// groups.

#include <algorithm>
#include <cmath>
#include <random>

#include "evaluate/memory.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/throughput/configuration_bound.h"
#include "planners/throughput/incumbent.h"
#include "planners/throughput/placement_program.h"
#include "planners/throughput/program_solvers.h"
#include "planners/throughput/stage_model.h"
#include "planners/throughput/throughput.h"

namespace placewright {
namespace {

using namespace throughput;

constexpr double kAnnealingShare = 0.35;
constexpr double kBoundShare = 0.5;  // of what annealing leaves: for the configuration bound
constexpr std::uint64_t kMovesPerStep = 64;
constexpr int kRounds = 12;

class Annealing {
 public:
  Annealing(const Problem& problem, Incumbent& incumbent, Control& control, std::uint64_t seed)
      : problem_(problem),
        incumbent_(incumbent),
        control_(control),
        evaluator_(problem, incumbent.plan()->placement),
        ledger_(problem, incumbent.plan()->placement),
        random_(seed) {
    for (const GroupId group : problem.groups()) {
      for (const OpId op : problem.group_ops(group)) {
        for (const OpId other : problem.successors(op)) link(group, problem.group(other));
        for (const OpId other : problem.predecessors(op)) link(group, problem.group(other));
      }
    }
    neighbours_ = Rows<GroupId, GroupId>::from_pairs(problem.group_count(), links_);
  }

  // One cooling; `seconds` of it.
  void cool(double seconds, std::uint64_t most_moves) {
    const double begin = control_.elapsed();
    double share = 0;
    const double hot = 0.02 * evaluator_.value();
    best_ = evaluator_.value();
    power_ = 8;
    energy_ = energy();
    for (std::uint64_t moves = 0; share < 1; ++moves) {
      if (moves % kMovesPerStep == 0) {
        if (control_.should_stop(1)) return;
        share = std::max((control_.elapsed() - begin) / seconds,
                         static_cast<double>(moves) / static_cast<double>(most_moves));
        temperature_ = hot * std::pow(1e-3, share);
        const double power = 8 * std::pow(8, share);
        if (power > power_ * 1.05) {
          power_ = power;
          energy_ = energy();
        }
      }
      if (random_() % 3 == 0) {
        try_swap();
      } else {
        try_move();
      }
    }
  }

 private:
  void link(GroupId a, GroupId b) {
    if (a != b) links_.emplace_back(a, b);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  [[nodiscard]] double energy() const {
    const double top = evaluator_.value();
    if (!(top > 0) || evaluator_.impossible() > 0)
      return evaluator_.impossible() > 0 ? kInfinity : 0;
    double sum = 0;
    for (const DeviceId device : problem_.devices()) {
      sum += std::pow(evaluator_.load(device) / top, power_);
    }
    return top * std::pow(sum, 1 / power_);
  }

  void put(GroupId group, DeviceId to) {
    const DeviceId from = evaluator_.device(group);
    ledger_.remove_group(group, from);
    ledger_.add_group(group, to);
    evaluator_.move(group, to);
  }

  bool accept() {
    const double after = energy();
    const double unit = static_cast<double>(random_() >> 11U) * 0x1p-53;
    if (after > energy_ && !(unit < std::exp((energy_ - after) / temperature_))) return false;
    energy_ = after;
    if (evaluator_.value() < best_ * (1 - 1e-12)) {
      best_ = evaluator_.value();
      incumbent_.offer(evaluator_.placement());
    }
    return true;
  }

  void try_move() {
    const GroupId group{below(problem_.group_count())};
    const auto near = neighbours_[group];
    const DeviceId to = !near.empty() && random_() % 4 != 0
                            ? evaluator_.device(near[below(near.size())])
                            : DeviceId{below(problem_.device_count())};
    const DeviceId from = evaluator_.device(group);
    if (to == from || !problem_.group_allowed(group, to) || !ledger_.fits_group(group, to)) return;
    put(group, to);
    if (!accept()) put(group, from);
  }

  void try_swap() {
    const GroupId a{below(problem_.group_count())};
    const GroupId b{below(problem_.group_count())};
    const DeviceId device_a = evaluator_.device(a);
    const DeviceId device_b = evaluator_.device(b);
    if (device_a == device_b || !problem_.group_allowed(a, device_b) ||
        !problem_.group_allowed(b, device_a)) {
      return;
    }
    put(a, device_b);
    put(b, device_a);
    if (ledger_.within(device_a) && ledger_.within(device_b) && accept()) return;
    put(b, device_b);
    put(a, device_a);
  }

  const Problem& problem_;
  Incumbent& incumbent_;
  Control& control_;
  PipelineEvaluator evaluator_;
  MemoryLedger ledger_;
  std::mt19937_64 random_;
  std::vector<std::pair<GroupId, GroupId>> links_;
  Rows<GroupId, GroupId> neighbours_;
  double power_ = 8;
  double energy_ = 0;
  double temperature_ = 0;
  double best_ = kInfinity;
};

void anneal(const Problem& problem, Incumbent& incumbent, Control& control, double seconds) {
  const std::uint64_t most_moves = 40 * 1000 * (1 + problem.group_count() / 4);
  for (int round = 0; round < kRounds && !control.should_stop(); ++round) {
    Annealing(problem, incumbent, control,
              control.budget().seed + static_cast<std::uint64_t>(round))
        .cool(seconds / kRounds, most_moves);
  }
}

Answer plan(const Problem& problem, const Settings& settings, Control& control) {
  Incumbent incumbent(problem, control);
  incumbent.take_contiguous_plan(0.1);
  incumbent.raise_bound(StageModel(problem, blocks_of(problem)).work_bound(), "work");
  ProgramOutcome outcome;
  const bool prove = settings.flag("prove");
  if (incumbent.plan() && !incumbent.settled()) {
    anneal(problem, incumbent, control, control.remaining() * (prove ? kAnnealingShare : 1));
  }
  if (prove && incumbent.plan() && !incumbent.settled() && !control.should_stop(1)) {
    Control part = control.part("refine", control.remaining() * kBoundShare);
    const StageModel model(problem, program_blocks(problem));
    incumbent.raise_bound(configuration_bound(model, incumbent.bound(), incumbent.value(), part),
                          "sets of blocks within a load");
  }
  if (prove && !incumbent.settled() && !control.should_stop(1)) {
    outcome = solve_with_cp_sat(problem, incumbent, control);
  } else if (!incumbent.plan()) {
    outcome.reason = control.should_stop() ? control.stop_reason() : "no plan to start from";
  }
  return incumbent.answer(outcome.reason, outcome.infeasible);
}

std::string refuses(const Problem& problem) {
  if (problem.rules().contiguity != Contiguity::none) {
    return "it gives up contiguity; ask for --contiguity none";
  }
  return refuses_program(problem);
}

}  // namespace

PlannerEntry refine() {
  return PlannerEntry{
      .name = "refine",
      .summary =
          "pipelines that need not be contiguous: annealing from the contiguous optimum, and "
          "CP-SAT",
      .objectives = {Objective::throughput},
      .effort = Effort::anytime,
      .options = {{"prove", "give two thirds of the time to CP-SAT for a bound", true}},
      .refuses = refuses,
      .plan = plan};
}

}  // namespace placewright
