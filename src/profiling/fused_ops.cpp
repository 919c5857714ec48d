#include "profiling/fused_ops.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <unordered_map>

namespace placewright {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The group of each op, some groups contracted to one node.
class Contraction {
 public:
  explicit Contraction(const ModelGraph& graph) : graph_(graph), group_(graph.ops.size()) {
    std::iota(group_.begin(), group_.end(), std::size_t{0});
  }

  [[nodiscard]] std::size_t group(std::size_t op) const { return group_[op]; }

  // Joins the groups of these ops, unless that closes a cycle.
  void join(const OpGroup& ops) {
    std::set<std::size_t> joined;
    for (const std::size_t op : ops) joined.insert(group_[op]);
    if (joined.size() < 2) return;
    std::vector<std::size_t> before = group_;
    for (std::size_t& group : group_) {
      if (joined.contains(group)) group = *joined.begin();
    }
    if (order().empty()) group_ = std::move(before);
  }

  // Groups in topological order, of several candidates the one with the smallest number first;
  // empty where there is a cycle.
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<std::set<std::size_t>> readers(group_.size());
    std::vector<std::size_t> waiting(group_.size(), 0);
    std::set<std::size_t> groups(group_.begin(), group_.end());
    for (std::size_t op = 0; op < group_.size(); ++op) {
      for (const TensorKey& input : graph_.ops[op].inputs) {
        if (input.is_model_input() || group_[input.op] == group_[op]) continue;
        if (readers[group_[input.op]].insert(group_[op]).second) ++waiting[group_[op]];
      }
    }
    std::set<std::size_t> ready;
    for (const std::size_t group : groups) {
      if (waiting[group] == 0) ready.insert(group);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t group = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(group);
      for (const std::size_t reader : readers[group]) {
        if (--waiting[reader] == 0) ready.insert(reader);
      }
    }
    return order.size() == groups.size() ? order : std::vector<std::size_t>{};
  }

 private:
  const ModelGraph& graph_;
  std::vector<std::size_t> group_;
};

std::unordered_map<std::string_view, std::size_t> ops_by_name(const ModelGraph& graph) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) numbers.emplace(graph.ops[op].name, op);
  return numbers;
}

// The last op that something from outside the group reaches; ascending numbers are topological.
std::size_t last_entered(const ModelGraph& graph, const OpGroup& group) {
  const auto enters = [&](const TensorKey& input) {
    return input.is_model_input() || !std::binary_search(group.begin(), group.end(), input.op);
  };
  for (std::size_t i = group.size(); i-- > 0;) {
    const auto& inputs = graph.ops[group[i]].inputs;
    if (std::any_of(inputs.begin(), inputs.end(), enters)) return group[i];
  }
  return group.front();
}

// By node: the nearest one that has ops, itself, or along `next`; kNone where there is none.
std::vector<std::size_t> nearest_with_ops(const std::vector<OpGroup>& ops,
                                          const std::vector<std::vector<std::size_t>>& next) {
  std::vector<std::size_t> nearest(ops.size(), kNone);
  for (std::size_t node = 0; node < ops.size(); ++node) {
    std::deque<std::size_t> open{node};
    std::set<std::size_t> seen{node};
    while (!open.empty() && nearest[node] == kNone) {
      const std::size_t here = open.front();
      open.pop_front();
      if (!ops[here].empty()) nearest[node] = here;
      for (const std::size_t other : next[here]) {
        if (seen.insert(other).second) open.push_back(other);
      }
    }
  }
  return nearest;
}

// Ops that no node stands for, each with the one op that feeds it (or the one that reads it).
std::vector<OpGroup> removed_ops(const ModelGraph& graph, const std::vector<OpGroup>& nodes) {
  std::vector<char> executed(graph.ops.size(), 0);
  for (const OpGroup& ops : nodes) {
    for (const std::size_t op : ops) executed[op] = 1;
  }
  std::vector<std::set<std::size_t>> feeds(graph.ops.size());
  std::vector<std::set<std::size_t>> reads(graph.ops.size());
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    for (const TensorKey& input : graph.ops[op].inputs) {
      if (input.is_model_input()) continue;
      feeds[op].insert(input.op);
      reads[input.op].insert(op);
    }
  }
  std::vector<OpGroup> groups;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (executed[op] != 0) continue;
    if (feeds[op].size() == 1) {
      groups.push_back({*feeds[op].begin(), op});
    } else if (reads[op].size() == 1) {
      groups.push_back({op, *reads[op].begin()});
    }
  }
  return groups;
}

}  // namespace

std::vector<OpGroup> ops_of_nodes(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes) {
  const auto numbers = ops_by_name(graph);
  std::vector<OpGroup> ops(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& original : nodes[node].originals) {
      const auto found = numbers.find(original);
      if (found != numbers.end()) ops[node].push_back(found->second);
    }
    std::sort(ops[node].begin(), ops[node].end());
    ops[node].erase(std::unique(ops[node].begin(), ops[node].end()), ops[node].end());
  }
  return ops;
}

std::vector<double> times_of_ops(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes,
                                 const std::vector<double>& node_times) {
  const std::vector<OpGroup> ops = ops_of_nodes(graph, nodes);
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t node = 0; node < nodes.size(); ++node) numbers.emplace(nodes[node].name, node);
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::vector<std::vector<std::size_t>> read(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& input : nodes[node].inputs) {
      const auto found = numbers.find(input);
      if (found == numbers.end()) continue;
      readers[found->second].push_back(node);
      read[node].push_back(found->second);
    }
  }
  const std::vector<std::size_t> forward = nearest_with_ops(ops, readers);
  const std::vector<std::size_t> backward = nearest_with_ops(ops, read);
  std::vector<double> times(graph.ops.size(), 0);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::size_t owner = forward[node] != kNone ? forward[node] : backward[node];
    if (owner != kNone) times[last_entered(graph, ops[owner])] += node_times[node];
  }
  return times;
}

std::vector<OpGroup> fused_groups(const ModelGraph& graph,
                                  const std::vector<std::vector<ExecutedNode>>& kinds) {
  Contraction contraction(graph);
  for (const auto& nodes : kinds) {
    const std::vector<OpGroup> executed = ops_of_nodes(graph, nodes);
    for (const OpGroup& ops : executed) contraction.join(ops);
    for (const OpGroup& ops : removed_ops(graph, executed)) contraction.join(ops);
  }
  std::unordered_map<std::size_t, std::size_t> places;
  std::vector<OpGroup> groups;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    const auto [place, added] = places.emplace(contraction.group(op), groups.size());
    if (added) groups.emplace_back();
    groups[place->second].push_back(op);
  }
  std::erase_if(groups, [](const OpGroup& group) { return group.size() < 2; });
  return groups;
}

std::vector<OpGroup> ordered_groups(const ModelGraph& graph, const std::vector<OpGroup>& groups) {
  Contraction contraction(graph);
  for (const OpGroup& group : groups) contraction.join(group);
  std::vector<std::size_t> place(graph.ops.size(), 0);
  const std::vector<std::size_t> order = contraction.order();
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<OpGroup> ordered(order.size());
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    ordered[place[contraction.group(op)]].push_back(op);
  }
  return ordered;
}

}  // namespace placewright
