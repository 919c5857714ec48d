#include "planners/throughput/annealing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bounds/rounding.h"
#include "coarsen/blocks.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/methods/load_norm.h"
#include "planners/methods/placement_program.h"
#include "planners/random_numbers.h"

namespace placewright::throughput {
namespace {

constexpr std::uint64_t kMovesPerStep = 64;
constexpr std::size_t kMostPiece = 12;  // blocks that move as one piece

class Annealing {
 public:
  Annealing(const Problem& problem, const AnnealingUnits& units, Incumbent& incumbent,
            Control& control, std::uint64_t seed)
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

  // One cooling: `seconds` of it, or this many moves if the budget counts steps.
  void cool(double seconds, std::uint64_t most_moves) {
    if (movable_.empty()) return;
    const bool timed = control_.budget().steps == std::numeric_limits<std::uint64_t>::max();
    const double begin = control_.elapsed();
    double share = 0;
    const double hot = 0.02 * evaluator_.value();
    best_ = incumbent_.value();
    norm_ = {};
    energy_ = energy();
    for (std::uint64_t moves = 0; share < 1; ++moves) {
      if (moves % kMovesPerStep == 0) {
        if (control_.should_stop(1)) return;
        share = static_cast<double>(moves) / static_cast<double>(most_moves);
        if (timed) share = std::max(share, (control_.elapsed() - begin) / seconds);
        temperature_ = hot * std::pow(1e-3, share);
        if (norm_.sharpen(share)) energy_ = energy();
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

  std::uint32_t any_unit() { return movable_[random_.below(movable_.size())]; }
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

  [[nodiscard]] double energy() const { return norm_.of(evaluator_, problem_.devices()); }

  bool accept() {
    const double after = energy();
    const double unit = random_.unit();
    if (after > energy_ && !(unit < std::exp((energy_ - after) / temperature_))) return false;
    energy_ = after;
    if (evaluator_.value() < safe_sum(best_) && ledger_.within()) {
      best_ = evaluator_.value();
      incumbent_.offer(evaluator_.placement());
    }
    return true;
  }

  DeviceId some_device(std::uint32_t unit) {
    const auto& near = units_.neighbours[unit];
    if (near.empty() || random_() % 4 == 0) return DeviceId{random_.below(problem_.device_count())};
    return device(near[random_.below(near.size())]);
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
    const std::size_t most = 2 + random_.below(kMostPiece - 1);
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
  const AnnealingUnits& units_;
  Incumbent& incumbent_;
  Control& control_;
  PipelineEvaluator evaluator_;
  MemoryLedger ledger_;
  RandomNumbers random_;
  std::vector<std::uint32_t> movable_;
  std::vector<Step> trail_;
  std::vector<std::uint32_t> piece_;
  std::vector<char> picked_;
  LoadNorm norm_;
  double energy_ = 0;
  double temperature_ = 0;
  double best_ = kInfinity;
};

}  // namespace

AnnealingUnits::AnnealingUnits(const Problem& problem) {
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

std::uint64_t short_cooling(const AnnealingUnits& units) {
  return std::uint64_t{40'000} * (1 + units.size() / 4);
}

void cool(const Problem& problem, const AnnealingUnits& units, Incumbent& incumbent,
          Control& control, double seconds, std::uint64_t most_moves, std::uint64_t seed) {
  Annealing(problem, units, incumbent, control, seed).cool(seconds, most_moves);
}

}  // namespace placewright::throughput
