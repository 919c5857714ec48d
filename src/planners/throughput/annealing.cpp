#include "planners/throughput/annealing.h"

#include <algorithm>

#include "coarsen/blocks.h"
#include "planners/methods/pipeline_annealer.h"
#include "planners/methods/placement_program.h"

namespace placewright::throughput {
namespace {

constexpr std::size_t kMostPiece = 12;  // blocks that move as one piece

class Annealing : PipelineAnnealer {
 public:
  Annealing(const Problem& problem, const AnnealingUnits& units, Incumbent& incumbent,
            Control& control, std::uint64_t seed)
      : PipelineAnnealer(problem, units.groups, incumbent.plan()->placement, control, seed),
        units_(units),
        incumbent_(incumbent),
        picked_(units.size(), 0) {
    for (Unit unit = 0; unit < units.size(); ++unit) {
      if (gather(unit)) movable_.push_back(unit);
    }
  }

  void run(const Cooling& cooling) {
    if (movable_.empty()) return;
    cool(
        cooling, incumbent_.value(),
        [&] {
          change();
          return true;
        },
        [&] { incumbent_.offer(evaluator_.placement()); });
  }

 private:
  Unit any_unit() { return movable_[random_.below(movable_.size())]; }

  // Brings a block whose groups are apart together. False: no device allows it.
  bool gather(Unit unit) {
    const auto& groups = units_.groups[unit];
    const bool together = std::ranges::all_of(
        groups, [&](GroupId group) { return evaluator_.device(group) == device(unit); });
    if (together) return allowed(unit, device(unit));
    for (const GroupId group : groups) {
      const DeviceId to = evaluator_.device(group);
      if (!allowed(unit, to)) continue;
      put(unit, to);
      return true;
    }
    return false;
  }

  DeviceId some_device(Unit unit) {
    const auto& near = units_.neighbours[unit];
    if (near.empty() || random_() % 4 == 0) return DeviceId{random_.below(problem_.device_count())};
    return device(near[random_.below(near.size())]);
  }

  void change() {
    const std::uint64_t kind = random_() % 16;
    const Unit unit = any_unit();
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

  void exchange(Unit a, Unit b) {
    const DeviceId device_a = device(a);
    const DeviceId device_b = device(b);
    if (device_a == device_b || !allowed(a, device_b) || !allowed(b, device_a)) return;
    move(a, device_b);
    move(b, device_a);
  }

  // Grown from the block along tensors, within its device.
  void move_piece(Unit unit) {
    const DeviceId from = device(unit);
    const DeviceId to = some_device(unit);
    if (to == from) return;
    const std::size_t most = 2 + random_.below(kMostPiece - 1);
    std::vector<Unit>& piece = piece_;
    piece.assign(1, unit);
    picked_[unit] = 1;
    for (std::size_t i = 0; i < piece.size() && piece.size() < most; ++i) {
      for (const Unit next : units_.neighbours[piece[i]]) {
        if (piece.size() == most) break;
        if (picked_[next] != 0 || device(next) != from || !allowed(next, to)) continue;
        picked_[next] = 1;
        piece.push_back(next);
      }
    }
    for (const Unit member : piece) {
      picked_[member] = 0;
      move(member, to);
    }
  }

  // The block goes to the device of another, which leaves for a third.
  void push_out(Unit unit) {
    const Unit other = any_unit();
    const DeviceId to = device(other);
    const DeviceId third = some_device(other);
    if (to == device(unit) || third == to || !allowed(unit, to) || !allowed(other, third)) return;
    move(unit, to);
    move(other, third);
  }

  const AnnealingUnits& units_;
  Incumbent& incumbent_;
  std::vector<Unit> movable_;
  std::vector<Unit> piece_;
  std::vector<char> picked_;
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
  Annealing(problem, units, incumbent, control, seed)
      .run({.moves = most_moves, .seconds = seconds});
}

}  // namespace placewright::throughput
