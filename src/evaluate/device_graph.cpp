#include "evaluate/device_graph.h"

namespace placewright {
namespace {

// The nodes of each group: its forward ops, or its first op where it is an orphan.
Rows<GroupId, OpId> nodes_of_groups(const Problem& problem) {
  Rows<GroupId, OpId> nodes;
  std::vector<OpId> forward;
  for (const GroupId group : problem.groups()) {
    forward.clear();
    for (const OpId op : problem.group_ops(group)) {
      if (!problem.op(op).backward) forward.push_back(op);
    }
    if (forward.empty()) forward.push_back(problem.group_ops(group).front());
    nodes.append(forward);
  }
  return nodes;
}

}  // namespace

std::vector<std::pair<OpId, OpId>> forward_edges(const Problem& problem) {
  const Rows<GroupId, OpId> nodes = nodes_of_groups(problem);
  const auto is_orphan = [&](GroupId group) { return problem.op(nodes[group].front()).backward; };
  std::vector<std::pair<OpId, OpId>> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId successor : problem.successors(op)) {
      if (problem.op(op).backward != problem.op(successor).backward) continue;
      if (!problem.op(op).backward) {
        edges.emplace_back(op, successor);
        continue;
      }
      const GroupId before = problem.group(successor);
      const GroupId after = problem.group(op);
      if (before == after || (!is_orphan(before) && !is_orphan(after))) continue;
      for (const OpId from : nodes[before]) {
        for (const OpId to : nodes[after]) edges.emplace_back(from, to);
      }
    }
  }
  return edges;
}

Rows<DeviceId, DeviceId> device_graph(const Problem& problem, const Placement& placement) {
  std::vector<std::pair<DeviceId, DeviceId>> edges;
  for (const auto& [from, to] : forward_edges(problem)) {
    const bool placed = placement[from].valid() && placement[to].valid();
    if (placed && placement[from] != placement[to]) {
      edges.emplace_back(placement[from], placement[to]);
    }
  }
  return Rows<DeviceId, DeviceId>::from_pairs(problem.device_count(), edges);
}

}  // namespace placewright
