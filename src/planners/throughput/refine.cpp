// refine: good pipelines that need not be contiguous, with a bound that does not assume contiguity
// either.
//
// Starts from the better of the best contiguous plan and a local search's, then annealing over
// blocks (colocation groups, dominated ones joined) on the incremental evaluator. Moves: a block to
// another device (often to one of its neighbours'), two blocks change places, a connected piece of
// some blocks goes to another device, a block goes where another one is pushed out to a third
// device. What is minimised is the p-norm of the device loads, p growing from 8 to 64: near the
// maximum, yet a step that only relieves the second busiest device counts. The best maximum seen is
// kept; each cooling lasts about as long as those before it together.
//
// The configuration bound (configuration_bound.h) often proves the plan, and is asked early on;
// where it does not, CP-SAT on the integer program (placement_program.h) has the rest of the time
// for both.
//
// Memory, pins and support hold throughout. About a million moves per second on some hundred
// blocks.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

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

constexpr double kStartShare = 0.05;      // of the time, for each of the plans to start from
constexpr double kAnnealingShare = 0.55;  // of what is left then
constexpr double kBoundShare = 0.3;       // of what is left, whenever the bound is asked
constexpr std::uint64_t kMovesPerStep = 64;
constexpr double kCoolings[] = {1.0 / 16, 1.0 / 16, 1.0 / 8, 1.0 / 4, 1.0 / 2};
constexpr std::size_t kCoolingsBeforeBound = 2;
constexpr std::size_t kMostPiece = 12;  // blocks that move as one piece

// The groups of each block, and which blocks share a tensor.
struct Units {
  std::vector<std::vector<GroupId>> groups;
  std::vector<std::vector<std::uint32_t>> neighbours;

  explicit Units(const Problem& problem) {
    const Blocks blocks = program_blocks(problem);
    groups.resize(blocks.size());
    neighbours.resize(blocks.size());
    for (const GroupId group : problem.groups()) {
      groups[blocks.block_of[problem.group_ops(group).front()].index()].push_back(group);
    }
    for (const OpId op : problem.ops()) {
      const auto from = static_cast<std::uint32_t>(blocks.block_of[op].index());
      for (const OpId next : problem.successors(op)) {
        const auto to = static_cast<std::uint32_t>(blocks.block_of[next].index());
        if (from == to) continue;
        neighbours[from].push_back(to);
        neighbours[to].push_back(from);
      }
    }
  }
  [[nodiscard]] std::size_t size() const { return groups.size(); }
};

class Annealing {
 public:
  Annealing(const Problem& problem, const Units& units, Incumbent& incumbent, Control& control,
            std::uint64_t seed)
      : problem_(problem),
        units_(units),
        incumbent_(incumbent),
        control_(control),
        evaluator_(problem, incumbent.plan()->placement),
        ledger_(problem, incumbent.plan()->placement),
        random_(seed),
        picked_(units.size(), 0) {
    for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
      if (gather(unit)) movable_.push_back(unit);
    }
  }

  // One cooling: `seconds` of it, or so many moves where the budget counts steps.
  void cool(double seconds, std::uint64_t most_moves) {
    if (movable_.empty()) return;
    const bool timed = control_.budget().steps == std::numeric_limits<std::uint64_t>::max();
    const double begin = control_.elapsed();
    double share = 0;
    const double hot = 0.02 * evaluator_.value();
    best_ = incumbent_.value();
    power_ = 8;
    energy_ = energy();
    for (std::uint64_t moves = 0; share < 1; ++moves) {
      if (moves % kMovesPerStep == 0) {
        if (control_.should_stop(1)) return;
        share = static_cast<double>(moves) / static_cast<double>(most_moves);
        if (timed) share = std::max(share, (control_.elapsed() - begin) / seconds);
        temperature_ = hot * std::pow(1e-3, share);
        const double power = 8 * std::pow(8, share);
        if (power > power_ * 1.05) {
          power_ = power;
          energy_ = energy();
        }
      }
      change();
      if (trail_.empty()) continue;
      if (!within_memory() || !accept()) take_back();
      trail_.clear();
    }
  }

 private:
  struct Step {
    std::uint32_t unit;
    DeviceId from;
  };

  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  std::uint32_t any_unit() { return movable_[below(movable_.size())]; }
  [[nodiscard]] DeviceId device(std::uint32_t unit) const {
    return evaluator_.device(units_.groups[unit].front());
  }

  // Brings a block whose groups are apart together. False: no device allows it.
  bool gather(std::uint32_t unit) {
    const auto& groups = units_.groups[unit];
    const auto allowed = [&](DeviceId to) {
      return std::all_of(groups.begin(), groups.end(),
                         [&](GroupId group) { return problem_.group_allowed(group, to); });
    };
    const bool together = std::all_of(groups.begin(), groups.end(), [&](GroupId group) {
      return evaluator_.device(group) == device(unit);
    });
    if (together) return allowed(device(unit));
    for (const GroupId group : groups) {
      const DeviceId to = evaluator_.device(group);
      if (!allowed(to)) continue;
      for (const GroupId other : groups) put(other, to);
      return true;
    }
    return false;
  }

  void put(GroupId group, DeviceId to) {
    const DeviceId from = evaluator_.device(group);
    if (from == to) return;
    ledger_.remove_group(group, from);
    ledger_.add_group(group, to);
    evaluator_.move(group, to);
  }

  [[nodiscard]] bool allowed(std::uint32_t unit, DeviceId to) const {
    const auto& groups = units_.groups[unit];
    return std::all_of(groups.begin(), groups.end(),
                       [&](GroupId group) { return problem_.group_allowed(group, to); });
  }

  // False: it may not go there.
  bool move(std::uint32_t unit, DeviceId to) {
    const DeviceId from = device(unit);
    if (from == to) return true;
    if (!allowed(unit, to)) return false;
    trail_.push_back({unit, from});
    for (const GroupId group : units_.groups[unit]) put(group, to);
    return true;
  }

  void take_back() {
    for (auto step = trail_.rbegin(); step != trail_.rend(); ++step) {
      for (const GroupId group : units_.groups[step->unit]) put(group, step->from);
    }
  }

  [[nodiscard]] bool within_memory() const {
    return std::all_of(trail_.begin(), trail_.end(),
                       [&](const Step& step) { return ledger_.within(device(step.unit)); });
  }

  [[nodiscard]] double energy() const {
    const double top = evaluator_.value();
    if (evaluator_.impossible() > 0) return kInfinity;
    if (!(top > 0)) return 0;
    double sum = 0;
    for (const DeviceId device : problem_.devices()) {
      sum += std::pow(evaluator_.load(device) / top, power_);
    }
    return top * std::pow(sum, 1 / power_);
  }

  bool accept() {
    const double after = energy();
    const double unit = static_cast<double>(random_() >> 11U) * 0x1p-53;
    if (after > energy_ && !(unit < std::exp((energy_ - after) / temperature_))) return false;
    energy_ = after;
    if (evaluator_.value() < best_ * (1 - 1e-12) && ledger_.within()) {
      best_ = evaluator_.value();
      incumbent_.offer(evaluator_.placement());
    }
    return true;
  }

  DeviceId some_device(std::uint32_t unit) {
    const auto& near = units_.neighbours[unit];
    if (near.empty() || random_() % 4 == 0) return DeviceId{below(problem_.device_count())};
    return device(near[below(near.size())]);
  }

  void change() {
    const std::uint64_t kind = random_() % 16;
    const std::uint32_t unit = any_unit();
    if (kind < 8) {
      move(unit, some_device(unit));
    } else if (kind < 12) {
      exchange(unit, any_unit());
    } else if (kind < 14) {
      move_piece(unit);
    } else {
      push_out(unit);
    }
  }

  void exchange(std::uint32_t a, std::uint32_t b) {
    const DeviceId device_a = device(a);
    const DeviceId device_b = device(b);
    if (device_a == device_b || !allowed(a, device_b) || !allowed(b, device_a)) return;
    move(a, device_b);
    move(b, device_a);
  }

  // Grown from the block along tensors, within its device.
  void move_piece(std::uint32_t unit) {
    const DeviceId from = device(unit);
    const DeviceId to = some_device(unit);
    if (to == from) return;
    const std::size_t most = 2 + below(kMostPiece - 1);
    std::vector<std::uint32_t>& piece = piece_;
    piece.assign(1, unit);
    picked_[unit] = 1;
    for (std::size_t i = 0; i < piece.size() && piece.size() < most; ++i) {
      for (const std::uint32_t next : units_.neighbours[piece[i]]) {
        if (piece.size() == most) break;
        if (picked_[next] != 0 || device(next) != from || !allowed(next, to)) continue;
        picked_[next] = 1;
        piece.push_back(next);
      }
    }
    for (const std::uint32_t member : piece) {
      picked_[member] = 0;
      move(member, to);
    }
  }

  // The block goes to the device of another, which leaves for a third.
  void push_out(std::uint32_t unit) {
    const std::uint32_t other = any_unit();
    const DeviceId to = device(other);
    const DeviceId third = some_device(other);
    if (to == device(unit) || third == to || !allowed(unit, to) || !allowed(other, third)) return;
    move(unit, to);
    move(other, third);
  }

  const Problem& problem_;
  const Units& units_;
  Incumbent& incumbent_;
  Control& control_;
  PipelineEvaluator evaluator_;
  MemoryLedger ledger_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> movable_;
  std::vector<Step> trail_;
  std::vector<std::uint32_t> piece_;
  std::vector<char> picked_;
  double power_ = 8;
  double energy_ = 0;
  double temperature_ = 0;
  double best_ = kInfinity;
};

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
    if (!incumbent_.settled()) incumbent_.take_plan_of(local_search(), kStartShare);
    if (incumbent_.plan()) anneal();
    ProgramOutcome outcome;
    if (prove_) bound();
    if (prove_ && !done()) {
      outcome = solve_with_cp_sat(problem_, incumbent_, control_);
    } else if (!incumbent_.plan()) {
      outcome.reason = control_.should_stop() ? control_.stop_reason() : "no plan to start from";
    }
    return incumbent_.answer(outcome.reason, outcome.infeasible);
  }

 private:
  bool done() { return incumbent_.settled() || control_.should_stop(); }

  void anneal() {
    const Units units(problem_);
    const double seconds = control_.remaining() * (prove_ ? kAnnealingShare : 1);
    const std::uint64_t most_moves = 40 * 1000 * (1 + units.size() / 4);
    std::uint64_t seed = control_.budget().seed;
    std::size_t coolings = 0;
    for (const double share : kCoolings) {
      if (done()) return;
      const auto moves = static_cast<double>(most_moves) * 16 * share;
      Annealing(problem_, units, incumbent_, control_, seed++)
          .cool(seconds * share, static_cast<std::uint64_t>(moves));
      if (prove_ && ++coolings == kCoolingsBeforeBound) bound();
    }
  }

  void bound() {
    if (!incumbent_.plan() || done() || incumbent_.value() == bounded_for_) return;
    bounded_for_ = incumbent_.value();
    Control part = control_.part("refine", control_.remaining() * kBoundShare);
    incumbent_.raise_bound(
        configuration_bound(model_, incumbent_.bound(), incumbent_.value(), part),
        "sets of blocks within a load");
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
          "pipelines that need not be contiguous: annealing, the configuration bound, CP-SAT",
      .objectives = {Objective::throughput},
      .effort = Effort::anytime,
      .share = 4,
      .options = {{"prove", "give half of the time to bounds and CP-SAT", true}},
      .refuses = refuses,
      .plan = plan};
}

}  // namespace placewright
