// One cooling of a pipeline: units of ops move between devices, and a change that makes the loads
// worse stays with a probability that falls. Planners add the moves.
//
// What is minimised in the place of the largest load, which few moves change, is the p-norm of the
// loads of all devices, p growing from 8 to 64 in a cooling; the best maximum seen is what counts.
// Memory and support hold throughout. About a million moves per second on some hundred units.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "bounds/rounding.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline_evaluator.h"
#include "planners/planner.h"
#include "planners/random_numbers.h"

namespace placewright::throughput {

class LoadNorm {
 public:
  // Of the evaluator's placement; infinite where it is impossible.
  template <class Devices>
  [[nodiscard]] double of(const PipelineEvaluator& evaluator, const Devices& devices) const {
    if (evaluator.impossible() > 0) return kInfinity;
    const double top = evaluator.value();
    if (!(top > 0)) return 0;
    double sum = 0;
    for (const DeviceId device : devices) sum += std::pow(evaluator.load(device) / top, power_);
    return top * std::pow(sum, 1 / power_);
  }

  // When this share of a cooling is over. True: norms are not comparable with those before.
  bool sharpen(double share) {
    const double power = kFirstPower * std::pow(kPowerGrowth, share);
    if (power <= power_ * kLeastGrowth) return false;
    power_ = power;
    return true;
  }

 private:
  static constexpr double kFirstPower = 8;
  static constexpr double kPowerGrowth = 8;
  static constexpr double kLeastGrowth = 1.05;  // less is not worth another look at all loads

  double power_ = kFirstPower;
};

struct Cooling {
  std::uint64_t moves = 0;
  double seconds = kInfinity;  // at most, unless the budget counts steps
  double cold = 1e-3;          // the last temperature, of the first
};

class PipelineAnnealer {
 public:
  using Unit = std::uint32_t;

 protected:
  // The groups of each unit, which must outlive this.
  PipelineAnnealer(const Problem& problem, const std::vector<std::vector<GroupId>>& groups,
                   const Placement& start, Control& control, std::uint64_t seed)
      : problem_(problem),
        groups_(groups),
        control_(control),
        evaluator_(problem, start),
        random_(seed),
        ledger_(problem, start) {}

  [[nodiscard]] DeviceId device(Unit unit) const {
    return evaluator_.device(groups_[unit].front());
  }

  [[nodiscard]] bool allowed(Unit unit, DeviceId to) const {
    return std::ranges::all_of(groups_[unit],
                               [&](GroupId group) { return problem_.group_allowed(group, to); });
  }

  // For good.
  void put(Unit unit, DeviceId to) {
    for (const GroupId group : groups_[unit]) {
      const DeviceId from = evaluator_.device(group);
      if (from == to) continue;
      ledger_.remove_group(group, from);
      ledger_.add_group(group, to);
      evaluator_.move(group, to);
    }
  }

  // Until it is taken back. False: it may not go there.
  bool move(Unit unit, DeviceId to) {
    const DeviceId from = device(unit);
    if (from == to) return true;
    if (!allowed(unit, to)) return false;
    trail_.push_back({unit, from});
    put(unit, to);
    return true;
  }

  void take_back(std::size_t length) {
    for (; trail_.size() > length; trail_.pop_back()) put(trail_.back().unit, trail_.back().from);
  }

  // `change` makes some moves, and answers whether they may stay; `better` is told of placements
  // below `best`, each better than those before.
  template <class Change, class Better>
  void cool(const Cooling& cooling, double best, const Change& change, const Better& better) {
    const bool timed = control_.budget().steps == std::numeric_limits<std::uint64_t>::max();
    const double begin = control_.elapsed();
    const double hot = kHot * evaluator_.value();
    double temperature = hot;
    double share = 0;
    norm_ = {};
    double energy = energy_now();
    for (std::uint64_t moves = 0; share < 1; ++moves) {
      if (moves % kMovesPerStep == 0) {
        if (control_.should_stop(1)) return;
        share = static_cast<double>(moves) / static_cast<double>(cooling.moves);
        if (timed) share = std::max(share, (control_.elapsed() - begin) / cooling.seconds);
        temperature = hot * std::pow(cooling.cold, share);
        if (norm_.sharpen(share)) energy = energy_now();
      }
      const bool may_stay = change();
      if (trail_.empty()) continue;
      if (may_stay && within_memory() && accepts(energy, temperature)) {
        if (evaluator_.value() < safe_sum(best) && ledger_.within()) {
          best = evaluator_.value();
          better();
        }
        trail_.clear();
      } else {
        take_back(0);
      }
    }
  }

  struct Step {
    Unit unit;
    DeviceId from;
  };

  const Problem& problem_;
  const std::vector<std::vector<GroupId>>& groups_;
  Control& control_;
  PipelineEvaluator evaluator_;
  RandomNumbers random_;
  std::vector<Step> trail_;  // of the change in hand

 private:
  static constexpr std::uint64_t kMovesPerStep = 64;
  static constexpr double kHot = 0.02;  // of the value

  [[nodiscard]] bool within_memory() const {
    return std::ranges::all_of(trail_,
                               [&](const Step& step) { return ledger_.within(device(step.unit)); });
  }

  [[nodiscard]] double energy_now() const { return norm_.of(evaluator_, problem_.devices()); }

  bool accepts(double& energy, double temperature) {
    const double after = energy_now();
    if (after > energy && !random_.chance(std::exp((energy - after) / temperature))) return false;
    energy = after;
    return true;
  }

  MemoryLedger ledger_;
  LoadNorm norm_;
};

}  // namespace placewright::throughput
