// Placements that walk: several good ones at once, each changed a little again and again.
//
// A policy draws every decision by itself, so most of its placements differ from the best in many
// decisions, and few of those help. Walkers keep what is good. A step changes a few decisions of a
// walker's placement; the change stays if the value is no worse, else with probability
// exp(-loss / temperature) (Metropolis et al., 1953). The temperature falls to nothing over a cycle
// of rounds; then all begin again at the best placement, with a cycle twice as long, so nobody
// needs to know beforehand how many rounds there will be.
//
// A step gives devices anew to a whole group, to a single node, or to a node and some around it:
// what the policy has drawn for them in a share of the steps, else one device at random. So the
// better the policy, the better the steps.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "planners/learned/placement_graph.h"
#include "planners/random_numbers.h"

namespace placewright::learned {

// A placement as the networks see it: the device of each node.
struct ValuedRow {
  std::vector<std::int32_t> row;
  double value = 0;
};

class Walkers {
 public:
  // The value of a row; infinite where nothing feasible comes of it.
  using Evaluate = std::function<double(std::span<const std::int32_t> row)>;

  // The graph must outlive the walkers.
  Walkers(const PlacementGraph& graph, std::uint64_t seed);

  [[nodiscard]] std::size_t size() const { return walkers_.size(); }

  // Cycles begin at `best`; all its nodes are on one device.
  void begin_round(const ValuedRow& best);
  // One walker's part of the round: a step for every `size()`-th row of `drawn` (node -> device, by
  // the policy). `group_of`: node -> group; `guided`: the share of steps that do what was drawn.
  // Walkers may walk in different threads.
  void walk(std::size_t walker, std::span<const std::int32_t> drawn,
            std::span<const std::int64_t> group_of, double guided, const Evaluate& evaluate);
  void end_round() { ++round_; }

  // The best that the walker has seen in this cycle.
  [[nodiscard]] const ValuedRow& best_of(std::size_t walker) const { return walkers_[walker].best; }

 private:
  struct Walker {
    RandomNumbers random;
    ValuedRow here = {};
    ValuedRow best = {};
  };

  // Gives some nodes what `drawn` has for them; empty: one device at random.
  void change(std::span<std::int32_t> row, std::span<const std::int32_t> drawn,
              std::span<const std::int64_t> group_of, RandomNumbers& random) const;
  [[nodiscard]] std::vector<NodeId> some_nodes(std::span<const std::int64_t> group_of,
                                               RandomNumbers& random) const;
  [[nodiscard]] DeviceId any_device_of(NodeId node, RandomNumbers& random) const;

  const PlacementGraph& graph_;
  Rows<NodeId, NodeId> around_;
  std::vector<Walker> walkers_;
  std::size_t round_ = 0;   // of the cycle
  std::size_t length_ = 0;  // of the cycle, in rounds
};

}  // namespace placewright::learned
