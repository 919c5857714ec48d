#include "bounds/call_graph.h"

#include <algorithm>

namespace placewright {
namespace {

constexpr double kTransferShare = 0.1;
constexpr double kMemoryShare = 0.1;

using AcceleratorClass = CallGraph::AcceleratorClass;

bool has_pins(const Problem& problem, DeviceId device) {
  return std::ranges::any_of(problem.draft().ops,
                             [&](const Op& op) { return op.pinned_to == device; });
}

bool alike(const Problem& problem, DeviceId a, DeviceId b) {
  const Device& first = problem.device(a);
  const Device& second = problem.device(b);
  return first.kind == second.kind && first.memory == second.memory &&
         first.send_overhead == second.send_overhead &&
         first.receive_overhead == second.receive_overhead;
}

std::vector<AcceleratorClass> accelerator_classes(const Problem& problem, int calls_per_device) {
  std::vector<AcceleratorClass> classes;
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device)) continue;
    const bool alone = has_pins(problem, device);
    const auto known = std::ranges::find_if(classes, [&](const AcceleratorClass& one) {
      return !alone && alike(problem, one.devices.front(), device) &&
             !has_pins(problem, one.devices.front());
    });
    if (known != classes.end()) {
      known->devices.push_back(device);
      continue;
    }
    classes.push_back({{device}, problem.device(device).memory});
  }
  for (AcceleratorClass& one : classes) {
    one.calls = one.devices.size() * static_cast<std::size_t>(calls_per_device);
  }
  return classes;
}

// The kept ops that wait for each kept op only by way of ops left out.
Table<OpId, std::vector<OpId>> waiting_through(const Problem& problem,
                                               const Table<OpId, char>& keep) {
  Table<OpId, std::vector<OpId>> next(problem.op_count());  // of all ops: kept ones that they reach
  const auto order = problem.topological_order();
  std::for_each(order.rbegin(), order.rend(), [&](const OpId op) {
    for (const OpId after : problem.successors(op)) {
      if (keep[after] == 0) {
        next[op].insert(next[op].end(), next[after].begin(), next[after].end());
      } else if (keep[op] == 0) {
        next[op].push_back(after);
      }
    }
    std::ranges::sort(next[op]);
    const auto rest = std::ranges::unique(next[op]);
    next[op].erase(rest.begin(), rest.end());
  });
  for (const OpId op : problem.ops()) {
    if (keep[op] == 0) next[op].clear();
  }
  return next;
}

// Joins colocated ops into nodes. Neighbours are kept as sorted lists of leading ops.
class Contraction {
 public:
  Contraction(const Problem& problem, const Table<OpId, char>& keep,
              const Table<OpId, std::vector<OpId>>& through, DeviceId host, int calls_per_device)
      : problem_(problem),
        calls_per_device_(calls_per_device),
        leader_(problem.op_count()),
        before_(problem.op_count()),
        after_(problem.op_count()),
        host_time_(problem.op_count(), 0) {
    for (const OpId op : problem.ops()) {
      leader_[op] = op;
      if (keep[op] == 0) continue;
      for (const OpId other : problem.predecessors(op)) {
        if (keep[other] != 0) before_[op].push_back(other);
      }
      for (const OpId other : problem.successors(op)) {
        if (keep[other] != 0) after_[op].push_back(other);
      }
      if (host.valid() && problem.allowed(op, host)) host_time_[op] = problem.time(op, host);
    }
    for (const OpId op : problem.ops()) {
      for (const OpId other : through[op]) {
        insert(after_[op], other);
        insert(before_[other], op);
      }
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (const OpId op : problem.topological_order()) {
        if (keep[op] == 0 || leader_[op] != op) continue;
        if (const OpId other = joinable(op); other.valid()) {
          join(op, other);
          changed = true;
        }
      }
    }
  }

  [[nodiscard]] OpId leader(OpId op) const {
    while (leader_[op] != op) op = leader_[op];
    return op;
  }
  [[nodiscard]] double host_time(OpId lead) const { return host_time_[lead]; }

 private:
  [[nodiscard]] bool takes_no_time(OpId op) const {
    return std::ranges::all_of(problem_.op(op).time, [](double time) { return time == 0; });
  }

  // The neighbour that the node may join, if any.
  [[nodiscard]] OpId joinable(OpId op) const {
    const bool one_before = before_[op].size() == 1;
    const bool one_after = after_[op].size() == 1;
    if (one_before && may_join(op, before_[op].front(), after_[op].empty(),
                               after_[before_[op].front()].size() == 1)) {
      return before_[op].front();
    }
    if (one_after && may_join(op, after_[op].front(), before_[op].empty(),
                              before_[after_[op].front()].size() == 1)) {
      return after_[op].front();
    }
    return {};
  }

  [[nodiscard]] bool may_join(OpId op, OpId other, bool leaf, bool only_one) const {
    if (problem_.group(op) != problem_.group(other)) return false;
    if (calls_per_device_ > 1) return leaf && takes_no_time(op) && single(op);
    return host_time_[op] == 0 || only_one;
  }

  [[nodiscard]] bool single(OpId op) const {
    return std::ranges::none_of(problem_.group_ops(problem_.group(op)),
                                [&](OpId other) { return other != op && leader_[other] == op; });
  }

  void join(OpId op, OpId other) {
    leader_[op] = other;
    host_time_[other] += host_time_[op];
    replace(before_, after_, op, other);
    replace(after_, before_, op, other);
  }

  // Edges of `op` in one direction become edges of `other`.
  void replace(Table<OpId, std::vector<OpId>>& forth, Table<OpId, std::vector<OpId>>& back, OpId op,
               OpId other) {
    for (const OpId far : forth[op]) {
      std::erase(back[far], op);
      if (far == other) continue;
      insert(forth[other], far);
      insert(back[far], other);
    }
    forth[op].clear();
  }

  static void insert(std::vector<OpId>& list, OpId op) {
    if (std::ranges::find(list, op) == list.end()) list.push_back(op);
  }

  const Problem& problem_;
  int calls_per_device_;
  Table<OpId, OpId> leader_;
  Table<OpId, std::vector<OpId>> before_;
  Table<OpId, std::vector<OpId>> after_;
  Table<OpId, double> host_time_;
};

constexpr std::uint32_t kNoNode = 0xffffffff;

// Leaders in topological order of the contracted graph.
std::vector<OpId> leaders_in_order(const Problem& problem, const Contraction& contraction,
                                   const Table<OpId, char>& keep,
                                   const Table<OpId, std::vector<OpId>>& through) {
  Table<OpId, std::vector<OpId>> after(problem.op_count());
  Table<OpId, std::uint32_t> waiting(problem.op_count(), 0);
  for (const OpId op : problem.ops()) {
    if (keep[op] == 0) continue;
    const auto add = [&](OpId next) {
      if (keep[next] == 0 || contraction.leader(op) == contraction.leader(next)) return;
      after[contraction.leader(op)].push_back(contraction.leader(next));
      ++waiting[contraction.leader(next)];
    };
    std::ranges::for_each(problem.successors(op), add);
    std::ranges::for_each(through[op], add);
  }
  std::vector<OpId> order;
  for (const OpId op : problem.topological_order()) {
    if (keep[op] != 0 && contraction.leader(op) == op && waiting[op] == 0) order.push_back(op);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const OpId next : after[order[i]]) {
      if (--waiting[next] == 0) order.push_back(next);
    }
  }
  return order;
}

// False: nobody reads it in another node. Costs nothing, at first.
bool add_net(CallGraph& graph, CallGraph::Net net) {
  std::erase(net.consumers, net.producer);
  if (net.consumers.empty()) return false;
  std::ranges::sort(net.consumers);
  const auto rest = std::ranges::unique(net.consumers);
  net.consumers.erase(rest.begin(), rest.end());
  graph.nets.push_back(std::move(net));
  for (AcceleratorClass& one : graph.classes) {
    one.in.push_back(0);
    one.out.push_back(0);
  }
  return true;
}

void add_tensors(const Problem& problem, const Table<OpId, std::uint32_t>& node_of,
                 CallGraph& graph) {
  for (const TensorId tensor : problem.tensors()) {
    CallGraph::Net net{node_of[problem.producer(tensor)], {}};
    if (net.producer == kNoNode) continue;
    for (const OpId consumer : problem.consumers(tensor)) {
      if (node_of[consumer] != kNoNode) net.consumers.push_back(node_of[consumer]);
    }
    if (!add_net(graph, std::move(net))) continue;
    for (AcceleratorClass& one : graph.classes) {
      const DeviceId device = one.devices.front();
      one.in.back() = problem.host_time(tensor) + problem.receive_overhead(tensor, device);
      one.out.back() = problem.host_time(tensor) + problem.send_overhead(tensor, device);
    }
  }
}

void add_orders(const Table<OpId, std::vector<OpId>>& through,
                const Table<OpId, std::uint32_t>& node_of, CallGraph& graph) {
  for (const OpId op : through.keys()) {
    CallGraph::Net net{node_of[op], {}, false};
    for (const OpId other : through[op]) net.consumers.push_back(node_of[other]);
    add_net(graph, std::move(net));
  }
}

void add_groups(const Problem& problem, const Table<OpId, std::uint32_t>& node_of,
                CallGraph& graph) {
  for (const GroupId group : problem.groups()) {
    std::vector<CallGraph::Node> members;
    for (const OpId op : problem.group_ops(group)) {
      if (node_of[op] != kNoNode) members.push_back(node_of[op]);
    }
    std::ranges::sort(members);
    const auto rest = std::ranges::unique(members);
    members.erase(rest.begin(), rest.end());
    if (members.size() > 1) graph.groups.push_back(std::move(members));
  }
}

double least_time(const Problem& problem, OpId op) {
  double least = kInfinity;
  for (const DeviceId device : problem.devices()) {
    if (problem.group_allowed(problem.group(op), device)) {
      least = std::min(least, problem.time(op, device));
    }
  }
  return least;
}

Table<OpId, double> weights_of_ops(const Problem& problem) {
  Table<OpId, double> time(problem.op_count(), 0);
  Table<OpId, double> end(problem.op_count(), 0);
  double longest = 0;
  for (const OpId op : problem.topological_order()) {
    time[op] = least_time(problem, op);
    for (const OpId before : problem.predecessors(op)) end[op] = std::max(end[op], end[before]);
    end[op] += time[op];
    longest = std::max(longest, end[op]);
  }
  double memory = kInfinity;
  for (const DeviceId device : problem.devices()) {
    if (!problem.on_host(device)) memory = std::min(memory, problem.device(device).memory);
  }
  Table<OpId, double> weight(problem.op_count(), 0);
  for (const OpId op : problem.ops()) {
    double transfer = 0;
    for (const TensorId tensor : problem.outputs(op)) transfer += problem.host_time(tensor);
    const double spent = time[op] + kTransferShare * transfer;
    if (spent > 0) weight[op] = longest > 0 ? spent / longest : kInfinity;
    if (problem.memory(op) > 0) weight[op] += kMemoryShare * problem.memory(op) / memory;
  }
  return weight;
}

}  // namespace

double CallGraph::least_work() const {
  double sum = 0;
  for (std::size_t node = 0; node < size(); ++node) {
    double least = host_time[node];
    for (const AcceleratorClass& one : classes) least = std::min(least, one.time[node]);
    sum += least;
  }
  return sum;
}

CallGraph call_graph(const Problem& problem, const Table<OpId, char>& keep, int calls_per_device) {
  CallGraph graph;
  graph.classes = accelerator_classes(problem, calls_per_device);
  DeviceId host;
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device)) host = device;
  }
  const Table<OpId, std::vector<OpId>> through = waiting_through(problem, keep);
  const Contraction contraction(problem, keep, through, host, calls_per_device);
  const std::vector<OpId> leaders = leaders_in_order(problem, contraction, keep, through);
  Table<OpId, std::uint32_t> node_of(problem.op_count(), kNoNode);
  for (std::uint32_t node = 0; node < leaders.size(); ++node) node_of[leaders[node]] = node;
  graph.ops.resize(leaders.size());
  graph.memory.assign(leaders.size(), 0);
  for (AcceleratorClass& one : graph.classes) one.time.assign(leaders.size(), 0);
  for (const OpId op : problem.topological_order()) {
    if (keep[op] == 0) continue;
    const std::uint32_t node = node_of[op] = node_of[contraction.leader(op)];
    graph.ops[node].push_back(op);
    graph.memory[node] += problem.memory(op);
    for (AcceleratorClass& one : graph.classes) {
      const DeviceId device = one.devices.front();
      const bool there = problem.group_allowed(problem.group(op), device);
      one.time[node] += there ? problem.time(op, device) : kInfinity;
    }
  }
  for (const OpId lead : leaders) {
    const bool there = host.valid() && problem.group_allowed(problem.group(lead), host);
    graph.host_time.push_back(there ? contraction.host_time(lead) : kInfinity);
  }
  add_tensors(problem, node_of, graph);
  add_orders(through, node_of, graph);
  const bool one_call = calls_per_device == 1;
  if (one_call) add_groups(problem, node_of, graph);
  graph.relaxed = !one_call || problem.shared_weight_count() > 0 ||
                  std::ranges::find(keep, char{0}) != keep.end() ||
                  (host.valid() && problem.device(host).memory < kInfinity);
  return graph;
}

Table<OpId, char> ops_above(const Problem& problem, double threshold) {
  Table<OpId, char> keep(problem.op_count(), 1);
  if (threshold < 0) return keep;
  const Table<OpId, double> weight = weights_of_ops(problem);
  const auto kept = [&](OpId op) { return keep[op] != 0; };
  const auto peel = [&](const OpId op) {
    if (kept(op) && weight[op] <= threshold &&
        (std::ranges::none_of(problem.predecessors(op), kept) ||
         std::ranges::none_of(problem.successors(op), kept))) {
      keep[op] = 0;
    }
  };
  // Sources vanish along the order, sinks against it.
  std::ranges::for_each(problem.topological_order(), peel);
  const auto order = problem.topological_order();
  std::for_each(order.rbegin(), order.rend(), peel);
  return keep;
}

Table<OpId, char> heaviest_ops(const Problem& problem, std::size_t count) {
  const Table<OpId, double> weight = weights_of_ops(problem);
  std::vector<OpId> order(problem.ops().begin(), problem.ops().end());
  std::ranges::stable_sort(order, [&](OpId a, OpId b) { return weight[a] > weight[b]; });
  Table<OpId, char> keep(problem.op_count(), 0);
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i) keep[order[i]] = 1;
  return keep;
}

}  // namespace placewright
