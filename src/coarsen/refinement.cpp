#include "coarsen/refinement.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace placewright {
namespace {

using Sets = std::vector<std::vector<OpId>>;  // members in topological order

Sets sets_of(const Problem& problem, const Partition& partition) {
  Sets sets;
  for (const OpId op : problem.topological_order()) {
    const std::size_t set = partition[op].index();
    if (sets.size() <= set) sets.resize(set + 1);
    sets[set].push_back(op);
  }
  std::erase_if(sets, [](const auto& set) { return set.empty(); });
  return sets;
}

// Numbered by the first op of each set, so that separate ops keep their numbers.
Partition numbered(const Problem& problem, const Sets& sets) {
  Partition temporary(problem.op_count());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    for (const OpId op : sets[i]) temporary[op] = CoarseSet{i};
  }
  Table<CoarseSet, CoarseSet> number(sets.size());
  std::size_t count = 0;
  Partition partition(problem.op_count());
  for (const OpId op : problem.ops()) {
    CoarseSet& known = number[temporary[op]];
    if (!known.valid()) known = CoarseSet{count++};
    partition[op] = known;
  }
  return partition;
}

void split_up(Sets& sets, std::size_t index) {
  const std::vector<OpId> members = std::move(sets[index]);
  sets[index] = {members.front()};
  for (std::size_t i = 1; i < members.size(); ++i) sets.push_back({members[i]});
}

void halve(Sets& sets, std::size_t index) {
  std::vector<OpId>& members = sets[index];
  const auto middle = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
  std::vector<OpId> later(middle, members.end());
  members.erase(middle, members.end());
  sets.push_back(std::move(later));
}

// Contiguity looks at groups of backward ops only ("orphans") in a way of their own.
Table<GroupId, char> orphan_groups(const Problem& problem) {
  Table<GroupId, char> orphan(problem.group_count(), 1);
  for (const OpId op : problem.ops()) {
    if (!problem.op(op).backward) orphan[problem.group(op)] = 0;
  }
  return orphan;
}

Sets split_by_kind_of_op(const Problem& problem, const Partition& proposal) {
  const auto orphan = orphan_groups(problem);
  std::map<std::tuple<CoarseSet, ModelId, bool, bool>, std::size_t> numbers;
  Sets sets;
  for (const OpId op : problem.topological_order()) {
    const Op& record = problem.op(op);
    const auto [entry, added] = numbers.try_emplace(
        {proposal[op], record.model, record.backward, orphan[problem.group(op)] != 0}, sets.size());
    if (added) sets.emplace_back();
    sets[entry->second].push_back(op);
  }
  return sets;
}

bool may_run_on_host(const Problem& problem, const std::vector<OpId>& members) {
  return std::ranges::any_of(problem.devices(), [&](DeviceId device) {
    return problem.on_host(device) &&
           std::ranges::all_of(members, [&](OpId op) { return problem.allowed(op, device); });
  });
}

// Each member waits for the one before and for nothing else, and only the last feeds others.
bool is_plain_chain(const Problem& problem, const std::vector<OpId>& members) {
  for (std::size_t i = 0; i + 1 < members.size(); ++i) {
    const auto after = problem.successors(members[i]);
    const auto before = problem.predecessors(members[i + 1]);
    if (after.size() != 1 || after[0] != members[i + 1] || before.size() != 1) return false;
  }
  return true;
}

bool contractible(const Problem& problem, const std::vector<OpId>& members) {
  return !record_of(problem.objective()).one_host || !may_run_on_host(problem, members) ||
         is_plain_chain(problem, members);
}

void split_if_not_contractible(const Problem& problem, Sets& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].size() > 1 && !contractible(problem, sets[i])) split_up(sets, i);
  }
}

// Colocation groups that sets tie together must share a device that has room for them all.
class TiedGroups {
 public:
  TiedGroups(const Problem& problem, const Sets& sets)
      : problem_(problem), parent_(problem.group_count()) {
    for (const GroupId group : parent_.keys()) parent_[group] = group;
    for (const auto& members : sets) {
      for (const OpId op : members) {
        const GroupId a = root(problem.group(members.front()));
        const GroupId b = root(problem.group(op));
        parent_[std::max(a, b)] = std::min(a, b);
      }
    }
    bytes_.assign(problem.group_count(), 0);
    devices_.assign(problem.group_count() * problem.device_count(), 1);
    for (const OpId op : problem.ops()) {
      const GroupId group = root(problem.group(op));
      bytes_[group] += problem.memory(op);
      for (const DeviceId device : problem.devices()) {
        if (!problem.allowed(op, device)) at(group, device) = 0;
      }
    }
  }

  [[nodiscard]] bool placeable(OpId op) {
    const GroupId group = root(problem_.group(op));
    return std::ranges::any_of(problem_.devices(), [&](DeviceId device) {
      return at(group, device) != 0 &&
             bytes_[group] <= problem_.space_memory(problem_.space(device));
    });
  }

 private:
  GroupId root(GroupId group) {
    while (parent_[group] != group) group = parent_[group] = parent_[parent_[group]];
    return group;
  }
  char& at(GroupId group, DeviceId device) {
    return devices_[group.index() * problem_.device_count() + device.index()];
  }

  const Problem& problem_;
  Table<GroupId, GroupId> parent_;
  Table<GroupId, double> bytes_;
  std::vector<char> devices_;  // group x device: whether it may run all of the group
};

void make_placeable(const Problem& problem, Sets& sets) {
  for (bool changed = true; changed;) {
    changed = false;
    TiedGroups tied(problem, sets);
    for (std::size_t i = 0, count = sets.size(); i < count; ++i) {
      if (sets[i].size() == 1 || tied.placeable(sets[i].front())) continue;
      halve(sets, i);
      changed = true;
    }
  }
}

// Edges between different sets, each once.
std::vector<std::pair<CoarseSet, CoarseSet>> set_edges(const Problem& problem,
                                                       const Partition& partition) {
  std::vector<std::pair<CoarseSet, CoarseSet>> edges;
  for (const OpId from : problem.ops()) {
    for (const OpId to : problem.successors(from)) {
      if (partition[from] != partition[to]) edges.emplace_back(partition[from], partition[to]);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// Takes away, again and again, sets into which no edge leads; marks what can be taken.
Table<CoarseSet, char> peeled(std::size_t count,
                              const std::vector<std::pair<CoarseSet, CoarseSet>>& edges) {
  const auto successors = Rows<CoarseSet, CoarseSet>::from_pairs(count, edges);
  Table<CoarseSet, std::size_t> missing(count, 0);
  for (const auto& edge : edges) ++missing[edge.second];
  std::vector<CoarseSet> free;
  for (const CoarseSet set : missing.keys()) {
    if (missing[set] == 0) free.push_back(set);
  }
  Table<CoarseSet, char> taken(count, 0);
  while (!free.empty()) {
    const CoarseSet set = free.back();
    free.pop_back();
    taken[set] = 1;
    for (const CoarseSet after : successors[set]) {
      if (--missing[after] == 0) free.push_back(after);
    }
  }
  return taken;
}

// The sets that lie on a cycle, or between two cycles.
std::vector<CoarseSet> cyclic_sets(const Problem& problem, const Partition& partition,
                                   std::size_t count) {
  auto edges = set_edges(problem, partition);
  const auto from_start = peeled(count, edges);
  for (auto& [from, to] : edges) std::swap(from, to);
  const auto from_end = peeled(count, edges);
  std::vector<CoarseSet> cyclic;
  for (const CoarseSet set : from_start.keys()) {
    if (!from_start[set] && !from_end[set]) cyclic.push_back(set);
  }
  return cyclic;
}

void break_cycles(const Problem& problem, Sets& sets) {
  while (true) {
    Partition partition(problem.op_count());
    for (std::size_t i = 0; i < sets.size(); ++i) {
      for (const OpId op : sets[i]) partition[op] = CoarseSet{i};
    }
    const auto cyclic = cyclic_sets(problem, partition, sets.size());
    if (cyclic.empty()) return;
    for (const CoarseSet set : cyclic) {
      if (sets[set.index()].size() > 1) halve(sets, set.index());
    }
  }
}

// The sets that read a tensor from elsewhere, by the fine rank of their first reader.
std::vector<CoarseSet> reading_sets(const Problem& fine, const Partition& partition,
                                    TensorId tensor) {
  const auto consumers = fine.consumers(tensor);
  std::vector<OpId> readers(consumers.begin(), consumers.end());
  std::ranges::sort(readers, {}, [&](OpId op) { return fine.topological_rank(op); });
  std::vector<CoarseSet> sets;
  for (const OpId reader : readers) {
    const CoarseSet set = partition[reader];
    if (set != partition[fine.producer(tensor)] && std::ranges::find(sets, set) == sets.end()) {
      sets.push_back(set);
    }
  }
  return sets;
}

// The reader that bears an overhead is the first in rank on its device, and the receiving device of
// a memory space is that of the first there, whichever they are: the readers of a tensor must rank
// alike before and after.
bool in_order_of_rank(const Problem& coarse, const std::vector<CoarseSet>& sets) {
  return std::ranges::is_sorted(
      sets, {}, [&](CoarseSet set) { return coarse.topological_rank(OpId{set.index()}); });
}

bool has_receive_overhead(const Problem& problem, TensorId tensor) {
  return std::ranges::any_of(problem.devices(), [&](DeviceId device) {
    return problem.receive_overhead(tensor, device) > 0;
  });
}

}  // namespace

Partition separate(const Problem& problem) {
  Partition partition(problem.op_count());
  for (const OpId op : problem.ops()) partition[op] = CoarseSet{op.index()};
  return partition;
}

Partition refined(const Problem& problem, const Partition& proposal) {
  Sets sets = split_by_kind_of_op(problem, proposal);
  split_if_not_contractible(problem, sets);
  make_placeable(problem, sets);
  break_cycles(problem, sets);
  // A half may run on the host where the whole could not. Splitting up makes no new cycle, and a
  // part finds room where the whole does.
  split_if_not_contractible(problem, sets);
  return numbered(problem, sets);
}

Partition without_moved_receivers(const Problem& fine, const Problem& coarse, Partition partition) {
  const bool one_for_all = fine.has_shared_spaces() && fine.space_count() > 1 &&
                           record_of(fine.objective()).form != PlanForm::calls;
  const bool first_pays = fine.has_overheads() && is_schedule(fine.objective());
  if (!one_for_all && !first_pays) return partition;
  Table<CoarseSet, char> out_of_order(coarse.op_count(), 0);
  for (const TensorId tensor : fine.tensors()) {
    if (!one_for_all && !has_receive_overhead(fine, tensor)) continue;
    const std::vector<CoarseSet> readers = reading_sets(fine, partition, tensor);
    if (in_order_of_rank(coarse, readers)) continue;
    for (const CoarseSet set : readers) out_of_order[set] = 1;
  }
  if (std::ranges::none_of(out_of_order, [](char marked) { return marked != 0; })) {
    return partition;
  }
  Sets sets = sets_of(fine, partition);
  bool any_split = false;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].size() == 1 || !out_of_order[partition[sets[i].front()]]) continue;
    split_up(sets, i);
    any_split = true;
  }
  // Where only separate ops are out of order, what moved their ranks is elsewhere.
  return any_split ? numbered(fine, sets) : separate(fine);
}

}  // namespace placewright
