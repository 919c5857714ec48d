#include "planners/calls/annealing.h"

#include <algorithm>
#include <cmath>

namespace placewright::calls {
namespace {

constexpr std::uint64_t kFirstCycle = 8000;
constexpr double kCycleGrowth = 1.5;
// A small graph needs new starts sooner, not longer cycles.
constexpr std::uint64_t kLongestCycle = 500'000;
constexpr std::uint64_t kLongestCycleOfOp = 4'000;
constexpr double kHottest = 0.02;  // of the value
constexpr double kAfresh = 0.1;
constexpr double kColdest = 5e-5;
constexpr std::uint64_t kBetweenStops = 16;

}  // namespace

Annealing::Annealing(const Problem& problem, std::uint64_t seed)
    : problem_(problem),
      evaluator_(problem),
      ledger_(problem),
      random_(seed),
      marks_(problem.op_count(), 0),
      longest_cycle_(
          std::clamp(kLongestCycleOfOp * problem.op_count(), kFirstCycle, kLongestCycle)) {}

void Annealing::start(Slots slots) {
  best_ = std::move(slots);
  best_value_ = evaluator_.latency(best_);
  first_ = all_on_host(problem_);
  if (!keeps_rules(problem_, evaluator_, first_)) first_ = best_;
  best_before_ = kInfinity;
  cycle_length_ = kFirstCycle;
  begin_cycle();
}

void Annealing::begin_cycle() {
  const bool afresh = cycle_length_ == longest_cycle_ && best_value_ == best_before_;
  best_before_ = best_value_;
  slots_ = afresh ? first_ : best_;
  value_ = evaluator_.latency(slots_);
  ledger_ = MemoryLedger(problem_);
  for (const OpId op : problem_.ops()) ledger_.add(op, evaluator_.device(slot(op)));
  cycle_left_ = cycle_length_;
  const double hottest = afresh ? kAfresh : kHottest;
  temperature_ = hottest * best_value_;
  cooling_ = std::pow(kColdest / hottest, 1.0 / static_cast<double>(cycle_length_));
  const double longer = kCycleGrowth * static_cast<double>(cycle_length_);
  cycle_length_ = std::min(static_cast<std::uint64_t>(longer), longest_cycle_);
}

void Annealing::run(std::uint64_t evaluations, Control& control) {
  while (evaluations > 0) {
    const std::uint64_t some = std::min(evaluations, kBetweenStops);
    if (control.should_stop(some)) return;
    run(some);
    evaluations -= some;
  }
}

void Annealing::run(std::uint64_t evaluations) {
  if (problem_.op_count() == 0) return;
  for (; evaluations > 0; --evaluations) step();
}

void Annealing::step() {
  if (cycle_left_-- == 0) begin_cycle();
  temperature_ *= cooling_;
  propose();
  if (changes_.empty() || !apply()) return;
  const double value = evaluator_.latency(slots_);
  if (!accepts(value)) return undo();
  value_ = value;
  if (value < best_value_) {
    best_value_ = value;
    best_ = slots_;
  }
}

bool Annealing::accepts(double value) {
  if (value == kInfinity) return false;
  return value <= value_ || random_.unit() < std::exp((value_ - value) / temperature_);
}

void Annealing::propose() {
  changes_.clear();
  ++proposal_;
  const OpId op{random_.below(problem_.op_count())};
  const double chance = random_.unit();
  if (chance < 0.6) return propose_single(op);
  if (chance < 0.92) return propose_cone(op);
  propose_call(slot(op), chance < 0.96 ? neighbouring_slot(op) : any_slot(), random_.unit() < 0.5);
}

Slot Annealing::neighbouring_slot(OpId op) {
  const auto before = problem_.predecessors(op);
  const auto after = problem_.successors(op);
  if (before.empty() && after.empty()) return any_slot();
  const std::size_t at = random_.below(before.size() + after.size());
  return slot(at < before.size() ? before[at] : after[at - before.size()]);
}

void Annealing::propose_single(OpId op) {
  const double chance = random_.unit();
  Slot to = CallEvaluator::kHostSlot;
  if (chance < 0.7) {
    to = neighbouring_slot(op);
  } else if (chance < 0.9) {
    to = any_slot();
  }
  if (to != slot(op)) take(op, to);
}

// The op and what follows it (or precedes it) inside its call.
void Annealing::propose_cone(OpId op) {
  const bool forward = random_.unit() < 0.5;
  const Slot from = slot(op);
  if (from == CallEvaluator::kHostSlot) return propose_single(op);
  std::vector<OpId> cone{op};
  std::vector<Slot> targets;
  marks_[op.index()] = proposal_;
  for (std::size_t i = 0; i < cone.size(); ++i) {
    for (const OpId next :
         forward ? problem_.successors(cone[i]) : problem_.predecessors(cone[i])) {
      if (slot(next) != from) {
        targets.push_back(slot(next));
      } else if (marks_[next.index()] != proposal_) {
        marks_[next.index()] = proposal_;
        cone.push_back(next);
      }
    }
  }
  const Slot to = targets.empty() || random_.unit() < 0.25 ? any_slot()
                                                           : targets[random_.below(targets.size())];
  if (to == from) return;
  ++proposal_;
  for (const OpId member : cone) take(member, to);
}

void Annealing::propose_call(Slot from, Slot to, bool swap) {
  if (from == to || from == CallEvaluator::kHostSlot) return;
  for (const OpId op : problem_.ops()) {
    const Slot at = slot(op);
    if (at == from) {
      take(op, to);
    } else if (swap && at == to && to != CallEvaluator::kHostSlot) {
      take(op, from);
    }
  }
}

// Colocated ops on other devices follow.
void Annealing::take(OpId op, Slot to) {
  if (marks_[op.index()] == proposal_) return;
  marks_[op.index()] = proposal_;
  changes_.push_back({op, to});
  const DeviceId device = evaluator_.device(to);
  for (const OpId mate : problem_.group_ops(problem_.group(op))) {
    if (marks_[mate.index()] == proposal_ || evaluator_.device(slot(mate)) == device) continue;
    marks_[mate.index()] = proposal_;
    changes_.push_back({mate, to});
  }
}

bool Annealing::apply() {
  for (const Change& change : changes_) {
    const DeviceId device = evaluator_.device(change.slot);
    if (!device.valid() || !problem_.allowed(change.op, device)) return false;
  }
  old_slots_.clear();
  for (const Change& change : changes_) {
    Slot& at = slots_[change.op.index()];
    old_slots_.push_back(at);
    ledger_.remove(change.op, evaluator_.device(at));
    at = change.slot;
    ledger_.add(change.op, evaluator_.device(at));
  }
  const auto holds = [&](const Change& change) {
    const DeviceId device = evaluator_.device(change.slot);
    const GroupId group = problem_.group(change.op);
    return ledger_.within(device) && std::ranges::all_of(problem_.group_ops(group), [&](OpId mate) {
             return evaluator_.device(slot(mate)) == device;
           });
  };
  if (std::ranges::all_of(changes_, holds)) return true;
  undo();
  return false;
}

void Annealing::undo() {
  for (std::size_t i = changes_.size(); i-- > 0;) {
    Slot& at = slots_[changes_[i].op.index()];
    ledger_.remove(changes_[i].op, evaluator_.device(at));
    at = old_slots_[i];
    ledger_.add(changes_[i].op, evaluator_.device(at));
  }
}

}  // namespace placewright::calls
