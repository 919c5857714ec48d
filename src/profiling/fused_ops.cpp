#include "profiling/fused_ops.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
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

// By op: whether no node stands for it.
std::vector<bool> removed(const std::vector<OpGroup>& nodes, std::size_t ops) {
  std::vector<bool> removed(ops, true);
  for (const OpGroup& each : nodes) {
    for (const std::size_t op : each) removed[op] = false;
  }
  return removed;
}

// By op, the ops that it reads from and those that read from it.
struct Neighbours {
  std::vector<std::set<std::size_t>> feeds;
  std::vector<std::set<std::size_t>> reads;

  explicit Neighbours(const ModelGraph& graph) : feeds(graph.ops.size()), reads(graph.ops.size()) {
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
      for (const TensorKey& input : graph.ops[op].inputs) {
        if (input.is_model_input()) continue;
        feeds[op].insert(input.op);
        reads[input.op].insert(op);
      }
    }
  }

  [[nodiscard]] bool touches(std::size_t op, const OpGroup& group) const {
    return std::ranges::any_of(group, [&](std::size_t other) {
      return feeds[op].contains(other) || reads[op].contains(other);
    });
  }
};

// Ops that no node stands for, each with the one op that feeds it (or the one that reads it).
std::vector<OpGroup> removed_ops(const ModelGraph& graph, const std::vector<OpGroup>& nodes) {
  const std::vector<bool> without_node = removed(nodes, graph.ops.size());
  const Neighbours neighbours(graph);
  std::vector<OpGroup> groups;
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    if (!without_node[op]) continue;
    if (neighbours.feeds[op].size() == 1) {
      groups.push_back({*neighbours.feeds[op].begin(), op});
    } else if (neighbours.reads[op].size() == 1) {
      groups.push_back({op, *neighbours.reads[op].begin()});
    }
  }
  return groups;
}

// The ops without a node that paths through such ops alone reach from the group along `next`.
std::set<std::size_t> reached(const OpGroup& group, const std::vector<bool>& without_node,
                              const std::vector<std::set<std::size_t>>& next) {
  std::set<std::size_t> found;
  std::deque<std::size_t> open(group.begin(), group.end());
  while (!open.empty()) {
    const std::size_t here = open.front();
    open.pop_front();
    for (const std::size_t op : next[here]) {
      if (without_node[op] && found.insert(op).second) open.push_back(op);
    }
  }
  return found;
}

void sort_out(OpGroup& ops) {
  std::ranges::sort(ops);
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
}

// By executed node, the numbers of those that it reads.
std::vector<std::vector<std::size_t>> read_nodes(const std::vector<ExecutedNode>& nodes) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t node = 0; node < nodes.size(); ++node) numbers.emplace(nodes[node].name, node);
  std::vector<std::vector<std::size_t>> read(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::string& input : nodes[node].inputs) {
      const auto found = numbers.find(input);
      if (found != numbers.end()) read[node].push_back(found->second);
    }
  }
  return read;
}

// The nodes that feed a node directly or through nodes that stand for no op: constants, and what
// the backend put between.
std::vector<std::size_t> sources_of(std::size_t node, const std::vector<OpGroup>& ops,
                                    const std::vector<std::vector<std::size_t>>& read) {
  std::vector<std::size_t> sources;
  std::deque<std::size_t> open{node};
  std::set<std::size_t> seen{node};
  while (!open.empty()) {
    const std::size_t here = open.front();
    open.pop_front();
    for (const std::size_t input : read[here]) {
      if (!ops[input].empty() || !seen.insert(input).second) continue;
      sources.push_back(input);
      open.push_back(input);
    }
  }
  return sources;
}

// A node may not name all ops that it stands for: a product with a bias is called after the
// addition. It is known by the weights that the node reads.
void add_by_weights(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes,
                    std::vector<OpGroup>& ops) {
  const std::vector<bool> without_node = removed(ops, graph.ops.size());
  const Neighbours neighbours(graph);
  std::unordered_map<std::string_view, const Weight*> weights;
  for (const Weight& weight : graph.weights) weights.emplace(weight.name, &weight);
  const std::vector<std::vector<std::size_t>> read = read_nodes(nodes);
  std::vector<OpGroup> found(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (ops[node].empty()) continue;
    for (const std::size_t source : sources_of(node, ops, read)) {
      const auto weight = weights.find(nodes[source].name);
      if (weight == weights.end()) continue;
      for (const std::size_t op : weight->second->ops) {
        if (without_node[op] && neighbours.touches(op, ops[node])) found[node].push_back(op);
      }
    }
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    ops[node].insert(ops[node].end(), found[node].begin(), found[node].end());
    sort_out(ops[node]);
  }
}

// What lies between two ops of a node is in it too.
void add_between(const ModelGraph& graph, std::vector<OpGroup>& ops) {
  const std::vector<bool> without_node = removed(ops, graph.ops.size());
  const Neighbours neighbours(graph);
  for (OpGroup& group : ops) {
    if (group.size() < 2) continue;
    const std::set<std::size_t> behind = reached(group, without_node, neighbours.reads);
    const std::set<std::size_t> before = reached(group, without_node, neighbours.feeds);
    std::ranges::set_intersection(behind, before, std::back_inserter(group));
    sort_out(group);
  }
}

// Whether the node makes fewer or more numbers than its last op does in the model. What reads it
// was changed with it: strides of a convolution are moved to the convolutions before it, which then
// make only what it reads.
bool is_resized(const ModelGraph& graph, const ExecutedNode& node, const OpGroup& ops) {
  if (node.elements == 0 || ops.empty()) return false;
  const GraphOp& last = graph.ops[ops.back()];
  if (last.outputs.size() != 1) return false;
  std::size_t elements = 1;
  for (const std::size_t size : last.outputs.front().shape) elements *= size;
  return elements != node.elements;
}

// The ops of each node that makes something else than the model says, with those that read it.
std::vector<OpGroup> resized_ops(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes,
                                 const std::vector<OpGroup>& ops) {
  const Neighbours neighbours(graph);
  std::vector<OpGroup> groups;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (!is_resized(graph, nodes[node], ops[node])) continue;
    OpGroup& group = groups.emplace_back(ops[node]);
    const auto& readers = neighbours.reads[ops[node].back()];
    group.insert(group.end(), readers.begin(), readers.end());
    sort_out(group);
  }
  return groups;
}

std::optional<std::size_t> gate_of(const OpGroup& group, const Neighbours& neighbours,
                                   const std::set<std::size_t>& outputs) {
  std::size_t exits = 0;
  std::map<std::size_t, std::set<std::size_t>> reached;  // by op, the exits behind it
  for (std::size_t i = group.size(); i-- > 0;) {
    const std::size_t op = group[i];
    bool leaves = outputs.contains(op);
    for (const std::size_t reader : neighbours.reads[op]) {
      if (std::ranges::binary_search(group, reader)) {
        reached[op].insert(reached[reader].begin(), reached[reader].end());
      } else {
        leaves = true;
      }
    }
    if (!leaves) continue;
    reached[op].insert(op);
    ++exits;
  }
  std::optional<std::size_t> gate;
  for (const std::size_t op : group) {
    if (reached[op].size() == exits) gate = op;
  }
  return gate;
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
    sort_out(ops[node]);
  }
  add_by_weights(graph, nodes, ops);
  add_between(graph, ops);
  return ops;
}

std::vector<double> times_of_ops(const ModelGraph& graph, const std::vector<ExecutedNode>& nodes,
                                 const std::vector<double>& node_times) {
  const std::vector<OpGroup> ops = ops_of_nodes(graph, nodes);
  const std::vector<std::vector<std::size_t>> read = read_nodes(nodes);
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::size_t input : read[node]) readers[input].push_back(node);
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
    for (const OpGroup& ops : resized_ops(graph, nodes, executed)) contraction.join(ops);
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

std::vector<std::optional<std::size_t>> gates_of(const ModelGraph& graph,
                                                 const std::vector<OpGroup>& groups) {
  const Neighbours neighbours(graph);
  std::set<std::size_t> outputs;
  for (const GraphOutput& output : graph.outputs) outputs.insert(output.tensor.op);
  std::vector<std::optional<std::size_t>> gates;
  for (const OpGroup& group : groups) gates.push_back(gate_of(group, neighbours, outputs));
  return gates;
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
