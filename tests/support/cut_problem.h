// Small random problems built to have cut nodes, and the traps beside them: passing edges, several
// sources and sinks.

#pragma once

#include <algorithm>
#include <vector>

#include "problem/problem.h"
#include "support/random_problem.h"

namespace placewright::testing {

// Rewires a draft so that one op in the middle is a cut node, but for traps that are left in now
// and then.
inline ProblemDraft with_cut_node(ProblemDraft draft, std::uint64_t seed, double trap_probability) {
  RandomSource random(seed * 7919 + 1);
  const Problem plain{ProblemDraft(draft)};
  const std::size_t place = random.between(1, plain.op_count() - 2);
  const OpId cut = plain.topological_order()[place];
  const auto before = [&](OpId op) { return plain.topological_rank(op) < place; };
  const auto after = [&](OpId op) { return plain.topological_rank(op) > place; };
  for (Tensor& tensor : draft.tensors) {
    if (!before(tensor.producer) || random.chance(trap_probability)) continue;
    const auto removed = std::remove_if(tensor.consumers.begin(), tensor.consumers.end(), after);
    if (removed == tensor.consumers.end()) continue;
    tensor.consumers.erase(removed, tensor.consumers.end());
    if (std::find(tensor.consumers.begin(), tensor.consumers.end(), cut) ==
        tensor.consumers.end()) {
      tensor.consumers.push_back(cut);
    }
  }
  std::erase_if(draft.tensors, [](const Tensor& tensor) { return tensor.consumers.empty(); });
  const Problem rewired{ProblemDraft(draft)};
  const auto connect = [&](OpId from, OpId to) {
    if (random.chance(trap_probability)) return;
    Tensor tensor;
    tensor.producer = from;
    tensor.consumers = {to};
    tensor.bytes = static_cast<double>(random.between(1, 64));
    tensor.host_time = random.unit() * 3;
    draft.tensors.push_back(tensor);
  };
  for (const OpId op : rewired.ops()) {
    if (before(op) && rewired.successors(op).empty()) connect(op, cut);
    if (after(op) && rewired.predecessors(op).empty()) connect(cut, op);
  }
  return draft;
}

inline ProblemDraft with_cut_node(const RandomProblemOptions& options, std::uint64_t seed,
                                  double trap_probability) {
  return with_cut_node(random_draft(options, seed), seed, trap_probability);
}

}  // namespace placewright::testing
