// Coarsening: a smaller problem that stands for a larger one, and the way back for plans.
//
// Sets of ops are contracted to one op each. Times and weights add up; what a set reads and writes
// stays as separate tensors, each sent once per device as before; tensors inside a set vanish
// (under peak memory they stay, without readers, so that their bytes count). `expand` turns a plan
// of the coarse problem into one of the fine problem with exactly the same value: a contracted op's
// members run back to back, in topological order, in the time that the coarse plan gave it.
//
// A partition is refined until that promise can be kept:
//   * members share model, pass and whether their colocation group has backward ops only
//   * some device may run all ops that the sets and colocation tie together, and has room for them
//   * the graph of the sets is acyclic: sets on a cycle are halved in topological order
//   * cut overheads (schedules): the reader that bears a receive overhead is the same before and
//     after; so is the one for whose device a tensor enters a memory space of several devices
//   * call-latency: a set that the host may run is a plain chain, since host ops run when they can
//
// What is lost: members cannot be separated nor interleaved with other ops, so the best coarse plan
// may be worse than the best fine plan, and a bound of the coarse problem is none of the fine
// problem, unless `lossless`. Refinement takes O((ops + edges) x rounds), a few rounds in practice.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "coarsen/coarsen_method.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

using CoarseSet = Id<struct CoarseSetNoun>;
using Partition = Table<OpId, CoarseSet>;

class Coarsening {
 public:
  // `fine` must outlive the coarsening.
  Coarsening(const Problem& fine, const CoarsenOptions& options);
  // Any partition; it is refined as described above.
  Coarsening(const Problem& fine, const Partition& partition);

  [[nodiscard]] const Problem& coarse() const { return coarse_; }
  [[nodiscard]] OpId coarse_op(OpId fine) const { return coarse_op_[fine]; }
  // In topological order of the fine problem.
  [[nodiscard]] std::span<const OpId> members(OpId coarse) const { return members_[coarse]; }

  // Every fine plan has a coarse plan of the same value, so bounds and proofs of infeasibility
  // carry over.
  [[nodiscard]] bool lossless() const { return lossless_; }

  // A plan of the fine problem with the same value.
  [[nodiscard]] Plan expand(const Plan& plan) const;

 private:
  struct Built;
  Coarsening(const Problem& fine, Built built);
  [[nodiscard]] Schedule expand(const Schedule& schedule, const Placement& placement) const;
  [[nodiscard]] std::vector<OpId> expand(std::span<const OpId> ops) const;

  const Problem* fine_;
  Table<OpId, OpId> coarse_op_;
  Rows<OpId, OpId> members_;
  Table<TensorId, TensorId> fine_tensor_;  // that a coarse one stands for
  Problem coarse_;
  bool lossless_ = false;
};

// The partitions that the methods propose.
Partition colocation_partition(const Problem& problem);
Partition class_partition(const Problem& problem);
Partition chain_partition(const Problem& problem, double speedup_ratio, double longest_packed);
Partition fusion_partition(const Problem& problem);

// The kind that speed-ups are measured against: the host's, or one called a CPU; else the first.
KindId reference_kind(const Problem& problem);

}  // namespace placewright
