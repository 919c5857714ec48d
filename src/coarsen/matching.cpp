#include "coarsen/matching.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace placewright {
namespace {

// Ops with more neighbours are joined with none: looking at all of them for each pair takes too
// long.
constexpr std::size_t kMostNeighbours = 64;

class Matching {
 public:
  Matching(const Problem& problem, const MatchingCosts& costs, const Placement& placement)
      : problem_(problem),
        costs_(costs),
        placement_(placement),
        level_(problem.op_count(), 0),
        partner_(problem.op_count()),
        upper_(problem.op_count(), 0) {
    for (const OpId op : problem.topological_order()) {
      for (const OpId next : problem.successors(op)) {
        level_[next] = std::max(level_[next], level_[op] + 1);
      }
    }
  }

  Partition run() {
    std::vector<Pair> pairs = candidates();
    std::ranges::stable_sort(pairs, std::greater{}, &Pair::rating);
    for (const Pair& pair : pairs) {
      if (!stays_acyclic(pair)) continue;
      partner_[pair.from] = pair.to;
      partner_[pair.to] = pair.from;
      upper_[pair.from] = 1;
    }
    return partition();
  }

 private:
  struct Pair {
    OpId from;
    OpId to;
    double rating;
  };

  [[nodiscard]] std::vector<Pair> candidates() const {
    std::vector<Pair> pairs;
    for (const OpId to : problem_.ops()) {
      if (problem_.predecessors(to).size() > kMostNeighbours) continue;
      for (const TensorId tensor : problem_.inputs(to)) {
        const OpId from = problem_.producer(tensor);
        const double work = costs_.work[from] + costs_.work[to];
        if (level_[from] + 1 != level_[to] || placement_[from] != placement_[to] ||
            work > costs_.heaviest || problem_.successors(from).size() > kMostNeighbours) {
          continue;
        }
        pairs.push_back({from, to, work > 0 ? costs_.transfer[tensor] / work : kInfinity});
      }
    }
    return pairs;
  }

  [[nodiscard]] bool stays_acyclic(const Pair& pair) const {
    if (partner_[pair.from].valid() || partner_[pair.to].valid()) return false;
    const auto another_upper = [&](OpId op) {
      return upper_[op] != 0 && level_[op] == level_[pair.from];
    };
    const auto another_lower = [&](OpId op) {
      return partner_[op].valid() && upper_[op] == 0 && level_[op] == level_[pair.to];
    };
    return std::ranges::none_of(problem_.predecessors(pair.to), another_upper) &&
           std::ranges::none_of(problem_.successors(pair.from), another_lower);
  }

  [[nodiscard]] Partition partition() const {
    Partition sets(problem_.op_count());
    std::size_t count = 0;
    for (const OpId op : problem_.ops()) {
      if (sets[op].valid()) continue;
      sets[op] = CoarseSet{count++};
      if (partner_[op].valid()) sets[partner_[op]] = sets[op];
    }
    return sets;
  }

  const Problem& problem_;
  const MatchingCosts& costs_;
  const Placement& placement_;
  Table<OpId, std::size_t> level_;
  Table<OpId, OpId> partner_;
  Table<OpId, char> upper_;  // the first of its pair
};

}  // namespace

Partition matched(const Problem& problem, const MatchingCosts& costs, const Placement& placement) {
  return Matching(problem, costs, placement).run();
}

}  // namespace placewright
