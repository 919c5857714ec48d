#include "planners/learned/placement_graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "coarsen/cut_nodes.h"
#include "problem/problem.h"

namespace placewright::learned {
namespace {

constexpr std::size_t kLargestRadius = 8;
// A node of more than this share of the largest memory is hard to pack.
constexpr double kMemoryShare = 0.125;
constexpr double kLargestRatio = 5;  // of logarithms of times

class Coarsener {
 public:
  Coarsener(const Problem& problem, const PlacementGraphOptions& options)
      : problem_(problem), parent_(problem.group_count()) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    if (!memory_cannot_bind(problem)) limit_memory();
    allowed_.resize(problem.group_count() * problem.device_count());
    memory_.assign(problem.group_count(), 0);
    for (const GroupId group : problem.groups()) {
      for (const DeviceId device : problem.devices()) {
        allowed_[group.index() * problem.device_count() + device.index()] =
            problem.group_allowed(group, device) ? 1 : 0;
      }
      for (const OpId op : problem.group_ops(group)) memory_[group.index()] += problem.memory(op);
    }
    if (options.coarsen != Joining::none) join_chains(options.coarsen == Joining::alike);
    join_neighbours(options.most_nodes);
  }

  // Numbers the nodes by the first of their ops in topological order.
  Table<OpId, NodeId> nodes() {
    Table<OpId, NodeId> node_of(problem_.op_count());
    std::vector<NodeId> number(problem_.group_count());
    std::size_t count = 0;
    for (const OpId op : problem_.topological_order()) {
      NodeId& node = number[root(problem_.group(op).index())];
      if (!node.valid()) node = NodeId{count++};
      node_of[op] = node;
    }
    return node_of;
  }

 private:
  void limit_memory() {
    double largest = 0;
    for (const DeviceId device : problem_.devices()) {
      largest = std::max(largest, problem_.device(device).memory);
    }
    memory_limit_ = kMemoryShare * largest;
  }

  std::size_t root(std::size_t group) {
    while (parent_[group] != group) group = parent_[group] = parent_[parent_[group]];
    return group;
  }

  // Whether they were joined: some device may run both, and they are not too large together.
  bool join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    if (a == b || memory_[a] + memory_[b] > memory_limit_) return false;
    const std::size_t devices = problem_.device_count();
    std::uint8_t* const of_a = &allowed_[a * devices];
    const std::uint8_t* const of_b = &allowed_[b * devices];
    bool common = false;
    for (std::size_t d = 0; d < devices; ++d) common = common || (of_a[d] & of_b[d]) != 0;
    if (!common) return false;
    for (std::size_t d = 0; d < devices; ++d) of_a[d] &= of_b[d];
    memory_[a] += memory_[b];
    parent_[b] = a;
    return true;
  }

  [[nodiscard]] DeviceId fastest(OpId op) const {
    DeviceId best;
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device)) continue;
      if (!best.valid() || problem_.time(op, device) < problem_.time(op, best)) best = device;
    }
    return best;
  }

  void join_chains(bool only_alike) {
    for (const OpId op : problem_.topological_order()) {
      const auto successors = problem_.successors(op);
      if (successors.size() != 1 || problem_.predecessors(successors[0]).size() != 1) continue;
      if (only_alike && fastest(op) != fastest(successors[0])) continue;
      join(problem_.group(op).index(), problem_.group(successors[0]).index());
    }
  }

  // Runs of the topological order, each of about the same number of ops.
  void join_neighbours(std::size_t most_nodes) {
    const Table<OpId, NodeId> node_of = nodes();
    std::size_t count = 0;
    for (const OpId op : problem_.ops()) count = std::max(count, node_of[op].index() + 1);
    if (count <= most_nodes) return;
    const std::size_t run = (count + most_nodes - 1) / most_nodes;
    std::vector<std::size_t> first_group(count / run + 1, SIZE_MAX);
    for (const OpId op : problem_.topological_order()) {
      std::size_t& first = first_group[node_of[op].index() / run];
      const std::size_t group = problem_.group(op).index();
      if (first == SIZE_MAX || (root(first) != root(group) && !join(first, group))) first = group;
    }
  }

  const Problem& problem_;
  std::vector<std::size_t> parent_;
  std::vector<std::uint8_t> allowed_;
  std::vector<double> memory_;
  double memory_limit_ = kInfinity;
};

std::vector<std::pair<NodeId, NodeId>> edges_between_nodes(const Problem& problem,
                                                           const Table<OpId, NodeId>& node_of) {
  std::vector<std::pair<NodeId, NodeId>> edges;
  for (const OpId op : problem.ops()) {
    for (const OpId successor : problem.successors(op)) {
      if (node_of[op] != node_of[successor]) edges.emplace_back(node_of[op], node_of[successor]);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

// FNV-1a, so that a type has the same bucket on every machine.
std::size_t bucket_of(std::string_view type) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char letter : type) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  }
  return (hash >> 32) % kTypeBuckets;
}

// The first four numbers of "1x64x56x56 f32".
std::vector<double> dimensions_of(std::string_view shape) {
  std::vector<double> dimensions;
  const char* at = shape.data();
  const char* const end = at + shape.size();
  while (at != end && dimensions.size() < 4) {
    double number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) break;
    dimensions.push_back(number);
    if (next == end || *next != 'x') break;
    at = next + 1;
  }
  return dimensions;
}

float log_size(double number) {
  return static_cast<float>(std::log1p(std::max(0.0, number)));
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// What moving an op's tensors in and out would take, in the mean over pairs of devices.
class TransferCosts {
 public:
  explicit TransferCosts(const Problem& problem) : problem_(problem) {}

  [[nodiscard]] double mean(TensorId tensor) const {
    if (problem_.interconnect() == InterconnectKind::host) return 2 * problem_.host_time(tensor);
    double sum = 0;
    double pairs = 0;
    for (const DeviceId from : problem_.devices()) {
      for (const DeviceId to : problem_.devices()) {
        const double time = problem_.link_time(tensor, from, to);
        if (from == to || time == kInfinity) continue;
        sum += time;
        ++pairs;
      }
    }
    return ratio(sum, pairs);
  }

 private:
  const Problem& problem_;
};

// Sums over the ops of a node, and the model as a whole.
struct NodeCosts {
  std::vector<double> time;  // node x device; infinite where it may not go
  std::vector<double> best;  // node: the least of its times
  std::vector<double> mean;  // node: over the devices where it may go
  std::vector<double> transfer;
  std::vector<double> memory;
  std::vector<double> above;  // longest path of mean times to the node
  std::vector<double> below;  // ... and from it, itself included
  double longest_path = 0;
  double total_best = 0;
};

NodeCosts node_costs(const Problem& problem, const PlacementGraph& graph) {
  const std::size_t nodes = graph.node_count();
  NodeCosts costs;
  costs.time.assign(nodes * graph.device_count, kInfinity);
  costs.best.assign(nodes, kInfinity);
  costs.mean.assign(nodes, 0);
  costs.transfer.assign(nodes, 0);
  costs.memory.assign(nodes, 0);
  costs.above.assign(nodes, 0);
  costs.below.assign(nodes, 0);
  const TransferCosts transfers(problem);
  for (const NodeId node : ids<NodeId>(nodes)) {
    double devices = 0;
    for (const DeviceId device : problem.devices()) {
      if (!graph.may_go(node, device)) continue;
      double time = 0;
      for (const OpId op : graph.ops[node]) time += problem.time(op, device);
      costs.time[node.index() * graph.device_count + device.index()] = time;
      costs.best[node.index()] = std::min(costs.best[node.index()], time);
      costs.mean[node.index()] += time;
      ++devices;
    }
    costs.mean[node.index()] = ratio(costs.mean[node.index()], devices);
    if (devices == 0) costs.best[node.index()] = 0;
    costs.total_best += costs.best[node.index()];
    for (const OpId op : graph.ops[node]) {
      costs.memory[node.index()] += problem.memory(op);
      for (const TensorId output : problem.outputs(op)) {
        const auto consumers = problem.consumers(output);
        if (std::all_of(consumers.begin(), consumers.end(),
                        [&](OpId reader) { return graph.node_of[reader] == node; })) {
          continue;
        }
        costs.transfer[node.index()] += transfers.mean(output);
      }
    }
  }
  // Nodes are numbered by their first op, so edges ascend but where colocation closes a cycle.
  const auto by_from = Rows<NodeId, NodeId>::from_pairs(nodes, graph.edges);
  for (const NodeId node : ids<NodeId>(nodes)) {
    for (const NodeId next : by_from[node]) {
      if (next < node) continue;
      double& above = costs.above[next.index()];
      above = std::max(above, costs.above[node.index()] + costs.mean[node.index()]);
    }
  }
  for (std::size_t i = nodes; i-- > 0;) {
    double longest = 0;
    for (const NodeId next : by_from[NodeId{i}]) {
      if (next.index() > i) longest = std::max(longest, costs.below[next.index()]);
    }
    costs.below[i] = costs.mean[i] + longest;
    costs.longest_path = std::max(costs.longest_path, costs.below[i]);
  }
  return costs;
}

void write_types(const Problem& problem, PlacementGraph& graph) {
  for (const OpId op : problem.ops()) {
    const std::size_t node = graph.node_of[op].index();
    graph.features[node * kNodeFeatures + bucket_of(problem.op(op).type)] += 1;
  }
  for (std::size_t node = 0; node < graph.node_count(); ++node) {
    for (std::size_t type = 0; type < kTypeBuckets; ++type) {
      float& count = graph.features[node * kNodeFeatures + type];
      count = log_size(count);
    }
  }
}

void write_structure(const Problem& problem, PlacementGraph& graph) {
  const std::size_t nodes = graph.node_count();
  std::vector<float> in(nodes);
  std::vector<float> out(nodes);
  for (const auto& [from, to] : graph.edges) {
    ++out[from.index()];
    ++in[to.index()];
  }
  const std::vector<float> fractal = fractal_dimensions(nodes, graph.edges);
  for (const NodeId node : ids<NodeId>(nodes)) {
    const std::size_t i = node.index();
    float* const features = &graph.features[i * kNodeFeatures + kTypeBuckets];
    features[0] = log_size(in[i]);
    features[1] = log_size(out[i]);
    features[2] = static_cast<float>(i) / static_cast<float>(nodes);
    features[3] = fractal[i];
    const auto outputs = problem.outputs(graph.ops[node].back());
    if (outputs.empty()) continue;
    const std::vector<double> shape = dimensions_of(problem.tensor(outputs[0]).shape);
    for (std::size_t k = 0; k < shape.size(); ++k) features[4 + k] = 0.25F * log_size(shape[k]);
  }
}

void write_costs(const NodeCosts& costs, PlacementGraph& graph) {
  const std::size_t nodes = graph.node_count();
  const double mean_best = ratio(costs.total_best, static_cast<double>(nodes));
  const double total_memory = std::accumulate(costs.memory.begin(), costs.memory.end(), 0.0);
  for (std::size_t node = 0; node < nodes; ++node) {
    float* const features =
        &graph.features[node * kNodeFeatures + kTypeBuckets + kStructureFeatures];
    features[0] = log_size(ratio(costs.best[node], mean_best));
    features[1] = log_size(ratio(costs.mean[node], costs.best[node]));
    features[2] = log_size(ratio(costs.transfer[node], costs.mean[node]));
    features[3] = static_cast<float>(ratio(costs.above[node], costs.longest_path));
    features[4] =
        static_cast<float>(ratio(costs.above[node] + costs.below[node], costs.longest_path));
    features[5] = log_size(static_cast<double>(nodes) * ratio(costs.memory[node], total_memory));
  }
}

void write_pairs(const Problem& problem, const NodeCosts& costs, const Placement& hint,
                 PlacementGraph& graph) {
  std::vector<double> whole(graph.device_count, 0);
  for (std::size_t d = 0; d < graph.device_count; ++d) {
    for (std::size_t node = 0; node < graph.node_count(); ++node) {
      const double time = costs.time[node * graph.device_count + d];
      whole[d] += time < kInfinity ? time : kLargestRatio * costs.mean[node];
    }
  }
  const double best_whole = *std::min_element(whole.begin(), whole.end());
  for (std::size_t node = 0; node < graph.node_count(); ++node) {
    for (std::size_t d = 0; d < graph.device_count; ++d) {
      const std::size_t pair = node * graph.device_count + d;
      float* const features = &graph.pair_features[pair * kPairFeatures];
      const double time = costs.time[pair];
      const double slower = time < kInfinity && costs.best[node] > 0
                                ? std::log(time / costs.best[node])
                                : (time < kInfinity ? 0 : kLargestRatio);
      features[0] = static_cast<float>(std::min(slower, kLargestRatio));
      features[1] = slower == 0 ? 1.0F : 0.0F;
      features[2] = log_size(ratio(
          time < kInfinity ? time - costs.best[node] : costs.mean[node],
          costs.transfer[node] + 1e-3 * best_whole / static_cast<double>(graph.node_count())));
      features[3] = static_cast<float>(
          std::min(kLargestRatio, std::log(std::max(1.0, ratio(whole[d], best_whole)))));
      features[4] = problem.on_host(DeviceId{d}) ? 1.0F : 0.0F;
      std::size_t hinted = 0;
      for (const OpId op : graph.ops[NodeId{node}]) hinted += hint[op] == DeviceId{d} ? 1 : 0;
      features[5] = static_cast<float>(hinted) / static_cast<float>(graph.ops[NodeId{node}].size());
    }
  }
}

}  // namespace

std::vector<float> fractal_dimensions(std::size_t node_count,
                                      std::span<const std::pair<NodeId, NodeId>> edges) {
  std::vector<std::pair<NodeId, NodeId>> both(edges.begin(), edges.end());
  for (const auto& [from, to] : edges) both.emplace_back(to, from);
  const auto neighbours = Rows<NodeId, NodeId>::from_pairs(node_count, both);
  std::vector<std::size_t> seen_by(node_count, SIZE_MAX);
  std::vector<float> slopes(node_count, 0);
  for (std::size_t start = 0; start < node_count; ++start) {
    std::vector<NodeId> reached{NodeId{start}};
    seen_by[start] = start;
    std::size_t ring = 0;
    double count = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    for (std::size_t radius = 1; radius <= kLargestRadius; ++radius) {
      const std::size_t ring_end = reached.size();
      for (; ring < ring_end; ++ring) {
        for (const NodeId next : neighbours[reached[ring]]) {
          if (seen_by[next.index()] == start) continue;
          seen_by[next.index()] = start;
          reached.push_back(next);
        }
      }
      if (reached.size() == ring_end) break;
      const double x = std::log(static_cast<double>(radius));
      const double y = std::log(static_cast<double>(reached.size()));
      ++count, sum_x += x, sum_y += y, sum_xx += x * x, sum_xy += x * y;
    }
    const double spread = count * sum_xx - sum_x * sum_x;
    if (spread > 0) {
      slopes[start] = static_cast<float>((count * sum_xy - sum_x * sum_y) / spread);
    }
  }
  return slopes;
}

PlacementGraph placement_graph(const Problem& problem, const PlacementGraphOptions& options,
                               const Placement& hint) {
  PlacementGraph graph;
  graph.device_count = problem.device_count();
  graph.node_of = Coarsener(problem, options).nodes();
  std::size_t nodes = 0;
  std::vector<std::pair<NodeId, OpId>> members;
  for (const OpId op : problem.topological_order()) {
    nodes = std::max(nodes, graph.node_of[op].index() + 1);
    members.emplace_back(graph.node_of[op], op);
  }
  graph.ops = Rows<NodeId, OpId>::from_pairs(nodes, members);
  graph.edges = edges_between_nodes(problem, graph.node_of);
  graph.allowed.assign(nodes * graph.device_count, 1);
  for (const OpId op : problem.ops()) {
    for (const DeviceId device : problem.devices()) {
      if (problem.allowed(op, device)) continue;
      graph.allowed[graph.node_of[op].index() * graph.device_count + device.index()] = 0;
    }
  }
  graph.features.assign(nodes * kNodeFeatures, 0);
  graph.pair_features.assign(nodes * graph.device_count * kPairFeatures, 0);
  write_types(problem, graph);
  if (options.structure) write_structure(problem, graph);
  if (options.costs) {
    const NodeCosts costs = node_costs(problem, graph);
    write_costs(costs, graph);
    write_pairs(problem, costs, hint, graph);
  }
  return graph;
}

}  // namespace placewright::learned
