// LayerFlow: a layer of ready ops shared out to devices at least cost, kept up to date.
//
//   minimise    sum over ops of cost(op, place of op)
//   subject to  every op has exactly one place; place p has at most capacity(p) ops
//
// That is the min-cost flow source -> model -> op -> place -> sink in which every op sends one
// unit, all or nothing. Arcs out of the source and the models have room for all ready ops of the
// model and cost nothing, so they decide nothing and are not stored. What is left has a few places
// and many ops, and the residual graph is kept contracted to the places:
//
//   move(a, b) = min over ops on a of cost(op, b) - cost(op, a)
//
// Method: successive shortest paths with potentials. Adding an op pushes one unit along a shortest
// path op -> place -> ... -> sink (Dijkstra over the places on reduced costs, which the potentials
// keep >= 0). Removing an op or raising a capacity opens one arc into the sink, so at most one
// cycle becomes negative: one shortest path from the sink finds and cancels it. Lowering a capacity
// below what is used pushes the surplus out. So a change costs one path: O(places^2 + ops moved x
// places + ops of the places on the path x places), and never a solve from nothing.
//
// Costs may be negative and kInfinity ("not there"). An op that finds no room stays without a place
// and is not tried again until something changes; give a layer a last place of unlimited capacity
// where that must not be.
//
// Ahuja, Magnanti, Orlin: Network Flows, 1993, section 9.7.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace placewright {

class LayerFlow {
 public:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  static constexpr std::int64_t kUnlimited = INT64_MAX;

  explicit LayerFlow(std::span<const std::int64_t> capacity);

  // A number for the op, to be used again after `remove`. `costs` by place.
  std::size_t add(std::span<const double> costs);
  void remove(std::size_t op);
  // The op and the room it takes leave together, as when it starts: nothing else changes.
  void retire(std::size_t op);
  void set_costs(std::size_t op, std::span<const double> costs);
  void set_capacity(std::size_t place, std::int64_t capacity);
  void clear();

  [[nodiscard]] std::size_t place(std::size_t op) const { return place_[op]; }
  [[nodiscard]] std::size_t places() const { return capacity_.size(); }
  // Of all ops that have a place.
  [[nodiscard]] double cost() const;
  // Within rounding, no residual arc has a negative reduced cost: the certificate of optimality.
  [[nodiscard]] bool potentials_prove_optimality() const;

 private:
  struct Search {
    std::vector<double> distance;       // by node, on reduced costs
    std::vector<std::size_t> previous;  // kNowhere: from the start
    std::vector<char> settled;
  };

  [[nodiscard]] std::size_t sink() const { return capacity_.size(); }
  [[nodiscard]] double cost(std::size_t op, std::size_t place) const {
    return costs_[op * places() + place];
  }
  [[nodiscard]] bool has_room(std::size_t place) const {
    return static_cast<std::int64_t>(ops_on_[place].size()) < capacity_[place];
  }
  [[nodiscard]] double arc(std::size_t from, std::size_t to) const;
  void begin_search();
  void run_search(std::size_t target, std::size_t closed);
  void lift_potentials(std::size_t target);
  bool insert(std::size_t op);
  void improve_into(std::size_t place);
  void evict_from(std::size_t place);
  void place_waiting();
  void move_along_path(std::size_t first, std::size_t last);
  void put(std::size_t op, std::size_t place);
  void take(std::size_t op);
  void refresh(std::size_t place);

  std::vector<std::int64_t> capacity_;
  std::vector<double> costs_;       // op x place
  std::vector<std::size_t> place_;  // by op
  std::vector<std::size_t> slot_;   // by op: position in ops_on_
  std::vector<std::size_t> free_numbers_;
  std::vector<std::size_t> waiting_;  // ops without a place
  std::vector<std::vector<std::size_t>> ops_on_;
  std::vector<double> move_;        // place x place
  std::vector<std::size_t> mover_;  // the op that makes it
  std::vector<char> stale_;         // rows of move_ to be computed again
  std::vector<double> potential_;   // places, sink
  Search search_;
  std::vector<std::size_t> path_;
  std::vector<std::pair<std::size_t, std::size_t>> moves_;  // op, place
};

}  // namespace placewright
