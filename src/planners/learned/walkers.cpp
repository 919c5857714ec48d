#include "planners/learned/walkers.h"

#include <cmath>

namespace placewright::learned {
namespace {

constexpr std::size_t kWalkers = 4;
constexpr std::size_t kFirstCycle = 64;  // rounds
// At the begin of a cycle a loss of this share of the value is taken with probability 1/e.
constexpr double kHottest = 0.001;
// Of the steps: those that change something more.
constexpr double kMoreShare = 0.25;
// Of the changes: those of a whole group; of the others, those with nodes around.
constexpr double kGroupShare = 0.25;
constexpr double kAroundShare = 0.5;

Rows<NodeId, NodeId> neighbours_of(const PlacementGraph& graph) {
  std::vector<std::pair<NodeId, NodeId>> both;
  for (const auto& [from, to] : graph.edges) {
    both.emplace_back(from, to);
    both.emplace_back(to, from);
  }
  return Rows<NodeId, NodeId>::from_pairs(graph.node_count(), both);
}

}  // namespace

Walkers::Walkers(const PlacementGraph& graph, std::uint64_t seed)
    : graph_(graph), around_(neighbours_of(graph)) {
  RandomNumbers seeds(seed);
  for (std::size_t i = 0; i < kWalkers; ++i) walkers_.push_back(Walker{RandomNumbers(seeds())});
}

void Walkers::begin_round(const ValuedRow& best) {
  if (round_ < length_) return;
  for (Walker& walker : walkers_) walker.here = walker.best = best;
  round_ = 0;
  length_ = length_ == 0 ? kFirstCycle : 2 * length_;
}

void Walkers::walk(std::size_t walker, std::span<const std::int32_t> drawn,
                   std::span<const std::int64_t> group_of, double guided,
                   const Evaluate& evaluate) {
  auto& [random, here, best] = walkers_[walker];
  const std::size_t nodes = graph_.node_count();
  const double share = static_cast<double>(round_) / static_cast<double>(length_);
  for (std::size_t i = walker; (i + 1) * nodes <= drawn.size(); i += size()) {
    ValuedRow next = here;
    const bool by_policy = random.chance(guided);
    change(next.row, by_policy ? drawn.subspan(i * nodes, nodes) : std::span<const std::int32_t>{},
           group_of, random);
    next.value = evaluate(next.row);
    const double loss = next.value - here.value;
    const double temperature = kHottest * (1 - share) * here.value;
    if (loss > 0 && !random.chance(std::exp(-loss / temperature))) continue;
    here = std::move(next);
    if (here.value < best.value) best = here;
  }
}

void Walkers::change(std::span<std::int32_t> row, std::span<const std::int32_t> drawn,
                     std::span<const std::int64_t> group_of, RandomNumbers& random) const {
  do {
    const std::vector<NodeId> nodes = some_nodes(group_of, random);
    const DeviceId device = any_device_of(nodes.front(), random);
    for (const NodeId node : nodes) {
      if (!drawn.empty()) {
        row[node.index()] = drawn[node.index()];
      } else if (graph_.may_go(node, device)) {
        row[node.index()] = static_cast<std::int32_t>(device.index());
      }
    }
  } while (random.chance(kMoreShare));
}

std::vector<NodeId> Walkers::some_nodes(std::span<const std::int64_t> group_of,
                                        RandomNumbers& random) const {
  const NodeId first{random.below(graph_.node_count())};
  std::vector<NodeId> nodes{first};
  if (random.chance(kGroupShare)) {
    for (const NodeId node : ids<NodeId>(graph_.node_count())) {
      if (node != first && group_of[node.index()] == group_of[first.index()]) nodes.push_back(node);
    }
  } else if (random.chance(kAroundShare)) {
    for (const NodeId near : around_[first]) {
      if (random.chance(0.5)) nodes.push_back(near);
    }
  }
  return nodes;
}

DeviceId Walkers::any_device_of(NodeId node, RandomNumbers& random) const {
  DeviceId device{random.below(graph_.device_count)};
  while (!graph_.may_go(node, device)) device = DeviceId{random.below(graph_.device_count)};
  return device;
}

}  // namespace placewright::learned
