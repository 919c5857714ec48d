// Exact scheduling of a module where all devices are in one memory and share resources: a problem
// of its own, for CP-SAT (cpsat_model.h).
//
// The module's ops, numbered in topological order, with the entry before them as an op that takes
// no time but what handing out its tensors costs. So an op is the first reader of a tensor on its
// device here where it is in the whole problem, and every op is as long as there. Beside a cut node
// nothing runs, so that the lengths of the modules add up to the latency of the whole, cut
// overheads included.
//
// A search goes from what is known: some local search (search.cpp), then CP-SAT for something
// better or the proof that there is nothing, in deterministic time in proportion to the width.
// Where that does not end, CP-SAT is asked once more, for a schedule half way to the lower bound:
// that there is none is easier to prove, and raises the bound. Memory is left out: in one memory it
// does not depend on the plan.
//
// Cost: see cpsat_model.h. A module of 30 ops on the three sets of two cores is proved in about a
// second.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coarsen/cut_nodes.h"
#include "evaluate/schedule.h"
#include "planners/latency/passage_search.h"
#include "problem/problem.h"

namespace placewright {

class ProgrammedModule final : public SearchableModule {
 public:
  ProgrammedModule(const Problem& whole, const CutSegment& segment);

  [[nodiscard]] std::string signature() const override;
  [[nodiscard]] std::size_t widest() const override;
  [[nodiscard]] std::unique_ptr<PassageSearch> search(std::size_t entry,
                                                      std::size_t exit) const override;

  [[nodiscard]] const Problem& problem() const { return problem_; }
  // In the whole problem, without the entry.
  [[nodiscard]] const std::vector<OpId>& ops() const { return ops_; }
  // Not valid: there is none.
  [[nodiscard]] OpId entry() const { return has_entry_ ? OpId{0} : OpId{}; }
  [[nodiscard]] OpId exit() const { return has_exit_ ? OpId{problem_.op_count() - 1} : OpId{}; }
  // The number in `problem` of the op at a place in `ops`.
  [[nodiscard]] OpId number(std::size_t place) const { return OpId{place + (has_entry_ ? 1 : 0)}; }

 private:
  std::vector<OpId> ops_;
  bool has_entry_;
  bool has_exit_;
  Problem problem_;
};

class ModuleProgram final : public PassageSearch {
 public:
  // Devices where there is an entry or exit.
  ModuleProgram(const ProgrammedModule& module, DeviceId entry_device, DeviceId exit_device);

  // Exact where there is one op; else it says only what is impossible.
  [[nodiscard]] double root_bound() override;
  // All on one device, but what is given.
  [[nodiscard]] ModuleItems simple_items() override;
  // A step of work is 1e-5 of CP-SAT's deterministic seconds.
  ModuleResult run(const PassageGoal& goal, const PassageLimits& limits) override;

  [[nodiscard]] ModuleItems items_of(
      const Plan& plan,
      const Table<TensorId, std::vector<const Transfer*>>& transfers) const override;
  double value_of(const ModuleItems& items) override;
  double replay(const ModuleItems& items, double origin, Plan& plan) override;

 private:
  // The items as an order of ops and their devices.
  struct Decisions {
    std::vector<OpId> order;
    Placement placement;
  };
  [[nodiscard]] Decisions decisions(const ModuleItems& items) const;
  [[nodiscard]] ModuleItems all_on(DeviceId device) const;
  [[nodiscard]] ModuleItems in_order(const Placement& placement,
                                     const Table<OpId, double>& start) const;
  void give(OpId op, DeviceId device);
  void improve(const ModuleItems& known, const PassageGoal& goal, const PassageLimits& limits,
               ModuleResult& best);
  void prove(double at_most, const PassageGoal& goal, const PassageLimits& limits,
             ModuleResult& best);
  void take(const Placement& placement, const Schedule& schedule, ModuleResult& best);

  const ProgrammedModule& module_;
  const Problem& problem_;
  Placement given_;
  bool possible_ = true;  // what is given keeps support, pins and colocation
  ScheduleEvaluator evaluator_;
};

}  // namespace placewright
