#include "coarsen/cut_nodes.h"

#include <algorithm>
#include <cstdint>

namespace placewright {
namespace {

// How many of the stretches [first, last] of ranks have a rank strictly inside.
class Coverage {
 public:
  explicit Coverage(std::size_t count) : change_(count + 1, 0) {}

  void add(std::size_t first, std::size_t last) {
    if (last <= first + 1) return;
    ++change_[first + 1];
    --change_[last];
  }

  [[nodiscard]] std::vector<bool> uncovered() const {
    std::vector<bool> free(change_.size() - 1);
    std::int64_t depth = 0;
    for (std::size_t rank = 0; rank < free.size(); ++rank) {
      depth += change_[rank];
      free[rank] = depth == 0;
    }
    return free;
  }

 private:
  std::vector<std::int64_t> change_;
};

}  // namespace

std::vector<OpId> cut_nodes(const Problem& problem) {
  std::vector<OpId> cuts;
  if (problem.model_count() != 1 || problem.op_count() == 0) return cuts;
  Coverage passing(problem.op_count());
  std::size_t first_sink = problem.op_count();
  std::size_t last_source = 0;
  for (const OpId op : problem.ops()) {
    const std::size_t rank = problem.topological_rank(op);
    if (problem.predecessors(op).empty()) last_source = std::max(last_source, rank);
    if (problem.successors(op).empty()) first_sink = std::min(first_sink, rank);
    for (const OpId next : problem.successors(op))
      passing.add(rank, problem.topological_rank(next));
  }
  for (const GroupId group : problem.groups()) {
    std::size_t first = problem.op_count();
    std::size_t last = 0;
    for (const OpId op : problem.group_ops(group)) {
      first = std::min(first, problem.topological_rank(op));
      last = std::max(last, problem.topological_rank(op));
    }
    if (first < last) passing.add(first, last);
  }
  const std::vector<bool> uncovered = passing.uncovered();
  for (std::size_t rank = last_source; rank <= first_sink && rank < problem.op_count(); ++rank) {
    if (uncovered[rank]) cuts.push_back(problem.topological_order()[rank]);
  }
  return cuts;
}

bool memory_cannot_bind(const Problem& problem, double copies) {
  double shared = 0;
  for (std::size_t i = 0; i < problem.shared_weight_count(); ++i) {
    shared += problem.shared_weight_bytes(WeightId{i});
  }
  Table<SpaceId, double> bytes(problem.space_count(), shared);
  Table<SpaceId, OpId> counted(problem.space_count());  // the last op that was
  for (const OpId op : problem.ops()) {
    for (const DeviceId device : problem.devices()) {
      const SpaceId space = problem.space(device);
      if (counted[space] == op || !problem.allowed(op, device)) continue;
      counted[space] = op;
      bytes[space] += problem.memory(op);
    }
  }
  return std::ranges::all_of(problem.spaces(), [&](SpaceId space) {
    return copies * bytes[space] <= problem.space_memory(space);
  });
}

std::vector<CutSegment> cut_segments(const Problem& problem) {
  std::vector<CutSegment> parts(1);
  const std::vector<OpId> cuts = cut_nodes(problem);
  auto next = cuts.begin();
  for (const OpId op : problem.topological_order()) {
    parts.back().ops.push_back(op);
    if (next == cuts.end() || *next != op) continue;
    parts.back().exit = op;
    ++next;
    parts.push_back(CutSegment{.entry = op, .exit = OpId{}, .ops = {}});
  }
  if (parts.back().ops.empty()) parts.pop_back();
  return parts;
}

}  // namespace placewright
