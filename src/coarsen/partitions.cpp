// Colocation groups, colour classes and packed chains (coarsening.h).

#include <algorithm>
#include <array>
#include <cctype>

#include "coarsen/blocks.h"
#include "coarsen/coarsening.h"
#include "problem/time_unit.h"

namespace placewright {
namespace {

bool named_cpu(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name.find("cpu") != std::string::npos;
}

class ChainPacking {
 public:
  ChainPacking(const Problem& problem, double speedup_ratio, double longest)
      : problem_(problem),
        ratio_(speedup_ratio),
        longest_(in_unit(longest, problem.unit())),
        reference_(reference_kind(problem).index()) {}

  Partition run() {
    Partition partition(problem_.op_count());
    Table<CoarseSet, OpId> first(problem_.op_count());
    std::size_t count = 0;
    for (const OpId op : problem_.topological_order()) {
      const auto before = problem_.predecessors(op);
      if (before.size() == 1 && problem_.successors(before[0]).size() == 1 && is_short(op) &&
          is_short(before[0]) && alike(first[partition[before[0]]], op)) {
        partition[op] = partition[before[0]];
        continue;
      }
      partition[op] = CoarseSet{count++};
      first[partition[op]] = op;
    }
    return partition;
  }

 private:
  [[nodiscard]] bool is_short(OpId op) const {
    const auto& times = problem_.op(op).time;
    return *std::min_element(times.begin(), times.end()) < longest_;
  }

  // Speed-ups on every kind within the ratio, and the same kinds support both.
  [[nodiscard]] bool alike(OpId first, OpId op) const {
    const auto& a = problem_.op(first).time;
    const auto& b = problem_.op(op).time;
    for (std::size_t kind = 0; kind < a.size(); ++kind) {
      if ((a[kind] == kUnsupported) != (b[kind] == kUnsupported)) return false;
    }
    if (a[reference_] == kUnsupported) return true;
    for (std::size_t kind = 0; kind < a.size(); ++kind) {
      if (a[kind] == kUnsupported || kind == reference_) continue;
      // a_ref / a_kind against b_ref / b_kind, without dividing by a time of zero.
      const double ours = b[reference_] * a[kind];
      const double theirs = a[reference_] * b[kind];
      if (ours == theirs) continue;
      if (!(ours < ratio_ * theirs && theirs < ratio_ * ours)) return false;
    }
    return true;
  }

  const Problem& problem_;
  double ratio_;
  double longest_;
  std::size_t reference_;
};

}  // namespace

KindId reference_kind(const Problem& problem) {
  const auto& kinds = problem.draft().cluster.kinds;
  const auto cpu = std::find_if(kinds.begin(), kinds.end(), [](const DeviceKind& kind) {
    return kind.on_host || named_cpu(kind.name);
  });
  return KindId{cpu == kinds.end() ? 0 : static_cast<std::size_t>(cpu - kinds.begin())};
}

Partition colocation_partition(const Problem& problem) {
  Partition partition(problem.op_count());
  for (const OpId op : problem.ops()) partition[op] = CoarseSet{problem.group(op).index()};
  return partition;
}

Partition class_partition(const Problem& problem) {
  const Blocks blocks = blocks_of(problem);
  Partition partition(problem.op_count());
  for (const OpId op : problem.ops()) partition[op] = CoarseSet{blocks.block_of[op].index()};
  return partition;
}

Partition chain_partition(const Problem& problem, double speedup_ratio, double longest_packed) {
  return ChainPacking(problem, speedup_ratio, longest_packed).run();
}

}  // namespace placewright
