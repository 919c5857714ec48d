// Prices on device time: a bound on total completion by Lagrangian relaxation of the devices.
//
// Time up to a horizon is cut into bins of equal length. Let y(d, b) >= 0 be the price of time on
// device d in bin b. Each model by itself chooses devices and times of its ops, as if it were alone,
// and pays for the time that it takes; no bin gives more than its length for each lane. So
//
//   total completion >= sum over models of min (weight (completion - arrival) + what its ops pay)
//                       - sum over d, b of y(d, b) lanes(d) length
//
// The minimum over the schedules of one model is bounded from below: of the readers of an op only
// one (the one with the longest way to the end) waits for it. Then a model is a tree that leads to
// its end, and with
//
//   least(v, d, b) = min over bins b' <= b of pay(v, d, b')
//                    + sum over tree predecessors u of min over devices a of
//                      least(u, a, b' - floor((time(u, a) + move(u, a, d)) / length))
//
// where pay is what v pays when it starts in the bin at the best moment, and a bin before the head of
// v on d (bounds/critical_path.h has the same recurrence) is no choice, a pass over the tree gives it.
// Rounding to bins only makes ops shorter. Prices go where ops crowd, by subgradient steps in the
// direction of use - capacity, as long as Polyak's rule says; each step proves its own bound.
//
// O(edges of the tree x devices^2 x bins) for each step. Ports, memory, colocation, shared resources
// and cut overheads are left out.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace placewright {

class PricedTime {
 public:
  // Schedules of interest end by the horizon, which is more than 0; later time is free.
  PricedTime(const Problem& problem, double horizon, std::size_t bins);

  // The bound that the prices at hand prove; then changes them. `value` is that of a plan.
  double step(double value);

  // Of one step, in tables that are filled: about as many nanoseconds.
  [[nodiscard]] double step_size() const;

 private:
  struct Input {
    std::size_t op = 0;               // by place in the tree's order
    std::vector<std::size_t> shifts;  // producer's device x reader's device; kNever
  };
  struct Node {
    OpId id;
    std::vector<std::size_t> devices;  // where it may run
    std::vector<Input> inputs;
    std::vector<std::size_t> first;  // by device: the bin of its head
    bool last = false;               // nobody in the tree waits for it
  };
  struct Tree {
    double weight = 1;
    double arrival = 0;
    std::vector<Node> nodes;  // predecessors first
  };
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  void build(ModelId model);
  void measure_heads_and_tails();
  [[nodiscard]] std::size_t bins_in(double time) const;
  [[nodiscard]] std::size_t cell(std::size_t node, std::size_t device, std::size_t bin) const {
    return (node * devices_ + device) * (bins_ + 1) + bin;
  }

  // What an op of this length pays from a moment in a bin: the least over the bin, and where.
  struct Payment {
    double price;
    double moment;  // in bins
  };
  [[nodiscard]] Payment least_payment(std::size_t device, double length, std::size_t bin) const;
  [[nodiscard]] double paid_until(std::size_t device, double moment) const;

  double cheapest(const Tree& tree);
  void fill(const Tree& tree, std::size_t node);
  [[nodiscard]] std::size_t best_source(const Tree& tree, const Input& input, std::size_t device,
                                        std::size_t bin) const;
  void use(const Tree& tree, std::size_t node, std::size_t device, std::size_t bin);
  void change_prices(double bound, double value);

  const Problem& problem_;
  std::size_t devices_;
  std::size_t bins_;
  double length_;              // of a bin
  std::vector<double> heads_;  // op x device: earliest start
  Table<OpId, double> tails_;  // from its end, at the fastest
  std::vector<Tree> trees_;
  std::vector<double> prices_;        // device x bin, for the whole length of a bin
  std::vector<double> paid_;          // sums of prices: device x (bin + 1)
  std::vector<double> use_;           // device x bin, in bins
  std::vector<double> least_;         // node x device x (bin + 1), of the tree at hand
  std::vector<std::uint32_t> where_;  // the bin of the minimum
  double best_ = 0;
  double pace_ = 1;
  int without_gain_ = 0;
};

}  // namespace placewright
