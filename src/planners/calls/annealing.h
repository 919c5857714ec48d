// Simulated annealing over assignments of ops to calls.
//
// A move takes a set of ops to another slot: one op; an op with its descendants (or ancestors) in
// the same call, which keeps both calls contiguous; a whole call (merge); the contents of two calls
// (swap). Colocated ops follow. Moves that break memory or a rule are not made; deadlocks have an
// infinite latency. Targets are mostly the slots of neighbours, so that calls grow and shrink at
// their borders. The temperature falls geometrically in cycles, each longer than the one before and
// begun at the best assignment so far. When they are as long as they get, a cycle that brought
// nothing is followed by one from everything on the host (the first assignment where that breaks a
// rule), and hotter: good assignments are far apart, and one cycle in ten or twenty finds a better
// one.
//
// O(ops + edges) for each evaluation. The same seed gives the same assignments.

#pragma once

#include <cstdint>
#include <vector>

#include "evaluate/memory.h"
#include "planners/methods/assignment.h"
#include "planners/planner.h"
#include "planners/random_numbers.h"

namespace placewright::calls {

class Annealing {
 public:
  Annealing(const Problem& problem, std::uint64_t seed);

  // Must keep the rules; from here on `best` is never worse.
  void start(Slots slots);

  // At most this many evaluations; fewer when asked to stop.
  void run(std::uint64_t evaluations, Control& control);
  // The same without asking, for threads.
  void run(std::uint64_t evaluations);

  [[nodiscard]] const Slots& best() const { return best_; }
  [[nodiscard]] double best_value() const { return best_value_; }

 private:
  struct Change {
    OpId op;
    Slot slot;
  };

  void step();
  void begin_cycle();
  [[nodiscard]] Slot slot(OpId op) const { return slots_[op.index()]; }
  [[nodiscard]] Slot any_slot() {
    return static_cast<Slot>(random_.below(static_cast<std::size_t>(evaluator_.slot_count())));
  }
  [[nodiscard]] Slot neighbouring_slot(OpId op);
  void propose();
  void propose_single(OpId op);
  void propose_cone(OpId op);
  void propose_call(Slot from, Slot to, bool swap);
  void take(OpId op, Slot slot);
  // Makes the changes; false, and nothing done, where they break a rule.
  bool apply();
  void undo();
  [[nodiscard]] bool accepts(double value);

  const Problem& problem_;
  CallEvaluator evaluator_;
  MemoryLedger ledger_;
  RandomNumbers random_;
  Slots slots_;
  double value_ = kInfinity;
  Slots first_;  // of cycles that do not begin at the best
  Slots best_;
  double best_value_ = kInfinity;
  double best_before_ = kInfinity;  // when the cycle began
  std::vector<Change> changes_;
  std::vector<Slot> old_slots_;
  std::vector<std::uint32_t> marks_;  // by op: the proposal it is part of
  std::uint32_t proposal_ = 0;
  double temperature_ = 0;
  double cooling_ = 1;
  std::uint64_t cycle_left_ = 0;
  std::uint64_t cycle_length_ = 0;
  std::uint64_t longest_cycle_ = 0;
};

}  // namespace placewright::calls
