#include "verify/contiguity.h"

#include <algorithm>
#include <span>
#include <string>

#include "verify/waiting.h"

namespace placewright::verifying {
namespace {

using Edge = std::pair<std::size_t, std::size_t>;

// Whether each group has backward ops only.
Table<GroupId, char> find_orphans(const Problem& problem) {
  Table<GroupId, char> orphan(problem.group_count(), 1);
  for (const OpId op : problem.ops()) {
    if (!problem.op(op).backward) orphan[problem.group(op)] = 0;
  }
  return orphan;
}

// Edges between two backward ops of which one at least is an orphan, turned round.
std::vector<std::pair<GroupId, GroupId>> turned_edges(const Problem& problem,
                                                      const Table<GroupId, char>& orphan) {
  std::vector<std::pair<GroupId, GroupId>> turned;
  for (const OpId from : problem.ops()) {
    if (!problem.op(from).backward) continue;
    for (const OpId to : problem.successors(from)) {
      const GroupId earlier = problem.group(to);
      const GroupId later = problem.group(from);
      if (!problem.op(to).backward || earlier == later) continue;
      if (orphan[earlier] != 0 || orphan[later] != 0) turned.emplace_back(earlier, later);
    }
  }
  return turned;
}

template <class Value>
void sort_and_keep_one_of_each(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Edges between stages, each with one edge of the forward graph that makes it.
struct StageGraph {
  std::vector<Edge> edges;      // sorted, each once
  std::vector<Edge> witnesses;  // nodes of the forward graph
};

std::vector<std::size_t> stage_of_nodes(const Problem& problem, const ForwardGraph& graph,
                                        const std::vector<Stage>& stages) {
  Table<OpId, std::size_t> stage_of(problem.op_count(), 0);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const OpId op : stages[i].ops) stage_of[op] = i;
  }
  std::vector<std::size_t> stages_of_nodes;
  stages_of_nodes.reserve(graph.op_of.size());
  for (const OpId op : graph.op_of) stages_of_nodes.push_back(stage_of[op]);
  return stages_of_nodes;
}

StageGraph stage_graph(const ForwardGraph& graph, const std::vector<std::size_t>& stage_of) {
  std::vector<std::pair<Edge, Edge>> feeds;
  for (const Edge& edge : graph.edges) {
    const Edge stages{stage_of[edge.first], stage_of[edge.second]};
    if (stages.first != stages.second) feeds.emplace_back(stages, edge);
  }
  std::sort(feeds.begin(), feeds.end());
  StageGraph result;
  for (const auto& [stages, nodes] : feeds) {
    if (!result.edges.empty() && result.edges.back() == stages) continue;
    result.edges.push_back(stages);
    result.witnesses.push_back(nodes);
  }
  return result;
}

void report_circle(const Problem& problem, const ForwardGraph& graph, const StageGraph& feeding,
                   const std::vector<Stage>& stages, const std::vector<std::size_t>& cycle,
                   Findings& findings) {
  std::string circle;
  std::vector<OpId> ops;
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const Edge step{cycle[i], cycle[(i + 1) % cycle.size()]};
    const auto found = std::lower_bound(feeding.edges.begin(), feeding.edges.end(), step);
    const Edge witness = feeding.witnesses[static_cast<std::size_t>(found - feeding.edges.begin())];
    const OpId from = graph.op_of[witness.first];
    const OpId to = graph.op_of[witness.second];
    devices.push_back(stages[cycle[i]].devices.front());
    ops.insert(ops.end(), {from, to});
    circle += fmt::format("'{}' ({} feeds {}) -> ", problem.device(devices.back()).name,
                          called(problem, from), called(problem, to));
  }
  circle += fmt::format("'{}'", problem.device(devices.front()).name);
  findings.add(ViolationCode::not_contiguous, ops, devices,
               "devices wait for each other in a circle: {}", circle);
}

// Successors of each node, as ranges of the sorted edges.
class Successors {
 public:
  Successors(const std::vector<Edge>& edges, std::size_t nodes)
      : edges_(edges), begin_(nodes + 1, 0) {
    for (const Edge& edge : edges) ++begin_[edge.first + 1];
    for (std::size_t node = 0; node < nodes; ++node) begin_[node + 1] += begin_[node];
  }
  [[nodiscard]] std::span<const Edge> operator[](std::size_t node) const {
    return edges_.subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

 private:
  std::span<const Edge> edges_;
  std::vector<std::size_t> begin_;
};

// A path that leaves the stage and comes back, from its last node in the stage to the first one in
// it again; empty when there is none. Breadth first over the nodes outside, from all exits at once.
std::vector<std::size_t> returning_path(const Successors& successors,
                                        const std::vector<std::size_t>& stage_of,
                                        std::size_t stage) {
  const std::size_t none = stage_of.size();
  std::vector<std::size_t> reached_from(stage_of.size(), none);
  std::vector<std::size_t> outside;
  const auto leave_from = [&](std::size_t node) {
    for (const auto& [from, to] : successors[node]) {
      if (stage_of[to] == stage || reached_from[to] != none) continue;
      reached_from[to] = from;
      outside.push_back(to);
    }
  };
  for (std::size_t node = 0; node < stage_of.size(); ++node) {
    if (stage_of[node] == stage) leave_from(node);
  }
  for (std::size_t next = 0; next < outside.size(); ++next) {
    for (const auto& [from, to] : successors[outside[next]]) {
      if (stage_of[to] != stage) continue;
      std::vector<std::size_t> path{to};
      for (std::size_t at = from; at != none; at = reached_from[at]) path.push_back(at);
      std::reverse(path.begin(), path.end());
      return path;
    }
    leave_from(outside[next]);
  }
  return {};
}

}  // namespace

ForwardGraph forward_graph(const Problem& problem) {
  ForwardGraph graph;
  for (const OpId op : problem.ops()) graph.op_of.push_back(op);
  for (const OpId from : problem.ops()) {
    if (problem.op(from).backward) continue;
    for (const OpId to : problem.successors(from)) {
      if (!problem.op(to).backward) graph.edges.emplace_back(from.index(), to.index());
    }
  }
  if (!problem.has_backward_ops()) return graph;

  const std::size_t ops = problem.op_count();
  const std::size_t groups = problem.group_count();
  const auto entry = [&](GroupId group) { return ops + group.index(); };
  const auto exit = [&](GroupId group) { return ops + groups + group.index(); };
  for (int side = 0; side < 2; ++side) {
    for (const GroupId group : problem.groups()) {
      graph.op_of.push_back(problem.group_ops(group).front());
    }
  }
  const Table<GroupId, char> orphan = find_orphans(problem);
  for (const auto& [from, to] : turned_edges(problem, orphan)) {
    graph.edges.emplace_back(exit(from), entry(to));
  }
  for (const GroupId group : problem.groups()) {
    if (orphan[group] != 0) graph.edges.emplace_back(entry(group), exit(group));
    for (const OpId op : problem.group_ops(group)) {
      if (problem.op(op).backward) continue;
      graph.edges.emplace_back(entry(group), op.index());
      graph.edges.emplace_back(op.index(), exit(group));
    }
  }
  sort_and_keep_one_of_each(graph.edges);
  return graph;
}

std::vector<std::size_t> feeding_order(const Problem& problem, const std::vector<Stage>& stages) {
  const ForwardGraph graph = forward_graph(problem);
  const StageGraph feeding = stage_graph(graph, stage_of_nodes(problem, graph, stages));
  return waiting_order(stages.size(), feeding.edges).order;
}

void check_joint_contiguity(const Problem& problem, const std::vector<Stage>& stages,
                            bool listed_by_plan, Findings& findings) {
  const ForwardGraph graph = forward_graph(problem);
  const StageGraph feeding = stage_graph(graph, stage_of_nodes(problem, graph, stages));
  const std::vector<std::size_t> cycle = waiting_order(stages.size(), feeding.edges).cycle;
  if (!cycle.empty()) {
    report_circle(problem, graph, feeding, stages, cycle, findings);
    return;
  }
  if (!listed_by_plan) return;
  for (std::size_t i = 0; i < feeding.edges.size(); ++i) {
    const auto [from, to] = feeding.edges[i];
    if (from < to) continue;
    const OpId producer = graph.op_of[feeding.witnesses[i].first];
    const OpId consumer = graph.op_of[feeding.witnesses[i].second];
    findings.add(ViolationCode::stages_out_of_order, {producer, consumer},
                 {stages[from].devices.front(), stages[to].devices.front()},
                 "{} in {} feeds {} in {}, which is earlier in the list", called(problem, producer),
                 stage_name(from), called(problem, consumer), stage_name(to));
  }
}

void check_own_contiguity(const Problem& problem, const std::vector<Stage>& stages,
                          Findings& findings) {
  const ForwardGraph graph = forward_graph(problem);
  const Successors successors(graph.edges, graph.op_of.size());
  const std::vector<std::size_t> stage_of = stage_of_nodes(problem, graph, stages);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::vector<std::size_t> path = returning_path(successors, stage_of, i);
    if (path.empty()) continue;
    std::vector<OpId> ops;
    std::vector<DeviceId> devices;
    std::string names;
    for (const std::size_t node : path) {
      if (ops.empty() || ops.back() != graph.op_of[node]) ops.push_back(graph.op_of[node]);
      const DeviceId device = stages[stage_of[node]].devices.front();
      if (!devices.empty() && devices.back() == device) continue;
      names += fmt::format("{}'{}'", devices.empty() ? "" : " -> ", problem.device(device).name);
      devices.push_back(device);
    }
    devices.pop_back();
    findings.add(ViolationCode::not_contiguous, ops, devices,
                 "a path from {} to {} leaves {} and comes back: {}", called(problem, ops.front()),
                 called(problem, ops.back()), called(problem, devices.front()), names);
  }
}

}  // namespace placewright::verifying
