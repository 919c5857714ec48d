// Prices on device time: a bound on total completion by Lagrangian relaxation of the devices.
//
// Time up to a horizon is cut into bins of equal length. Let y(d, b) >= 0 be the price of time on
// device d in bin b. Each model by itself chooses devices and times of its ops, as if it were
// alone, and pays for the time that it takes; no bin gives more than its length for each lane. So
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
// where pay is what v pays when it starts in the bin at the best moment, and a bin before the head
// of v on d (bounds/critical_path.h has the same recurrence) is no choice, a pass over the tree
// gives it. Rounding to bins only makes ops shorter.
//
// The other readers have prices too: for each wait w of a reader v for an op u that is not in the
// tree, p(w) >= 0 for the time that v is early, and r(w, a), of any sign, that u pays where it runs
// on a and v is paid for any device that it takes for u's:
//
//   u on a pays    p(w) (its end) + r(w, a)
//   v on d pays    min over devices a of p(w) move(u, a, d) - r(w, a)  -  p(w) (its start)
//
// No schedule pays more than nothing for them. Beyond the horizon h there are two more bins. In
// plans no worse than the one at hand a model is complete at c <= its latest completion l; an op
// that starts after h and pays for it starts at h at the earliest, and one that is paid at c less
// its own time and its tail at the latest. Both are linear in c, so it is enough to look at c = h
// (the bin `near`) and c = l (`far`).
//
// Devices that share resources have one price together, that of their pool (bounds/pools.h): an op
// pays for the part of the pool that it takes, and a bin gives the pool once. Where nested sets of
// cores each had a price of their own, several sets would give the same core.
//
// Prices go where ops crowd and readers are early, by subgradient steps as long as Polyak's rule
// says; each step proves its own bound. What each model would do by itself at these prices is of
// use too: ops in the order of their starts there are a good list for a plan.
//
// O(edges of the tree x devices^2 x bins) for each step. Ports, memory, colocation and cut
// overheads are left out, and which resources of a pool a device takes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace placewright {

class PricedTime {
 public:
  // `value` is that of a plan. Time after the horizon, which is more than 0, is free.
  PricedTime(const Problem& problem, double value, double horizon, std::size_t bins);

  // Begins with the prices of another that has the same problem and horizon, and `times` fewer
  // bins.
  void take_prices(const PricedTime& coarse, std::size_t times);

  // The bound that the prices at hand prove, at most the value; then changes them.
  double step();

  // When this part of each op is done, in the cheapest schedules that the last step found.
  [[nodiscard]] Table<OpId, double> moments(double part) const;

  // Of one step, about.
  [[nodiscard]] double step_seconds() const;

 private:
  struct Input {
    std::size_t op = 0;               // by place in the tree's order
    std::vector<std::size_t> shifts;  // producer's device x reader's device; kNever
  };
  struct Start {
    std::size_t device = 0;
    double moment = 0;  // in bins
  };
  struct Node {
    OpId id;
    std::vector<std::size_t> devices;  // where it may run
    std::vector<Input> inputs;
    std::vector<std::size_t> first;       // by device: the bin of its head
    bool last = false;                    // nobody in the tree waits for it
    std::vector<std::size_t> waited_for;  // waits outside the tree, by number
    std::vector<std::size_t> waits;
  };
  // The reader starts no earlier than the producer's end and the move.
  struct Wait {
    std::size_t producer = 0;  // by place in the tree's order
    std::size_t reader = 0;
    std::vector<double> moves;  // producer's device x reader's device, in bins
    double price = 0;           // of a bin that the reader is early
    std::vector<double> rents;  // by device of the producer
    // The direction of the next step.
    double early = 0;                 // the reader, in weighted bins
    std::vector<double> differences;  // by device: 1 if the producer is there, -1 if assumed there
  };
  struct Tree {
    double weight = 1;
    double arrival = 0;
    double latest = 0;          // completion, in bins, in plans no worse than the value
    std::vector<Node> nodes;    // predecessors first
    std::vector<Wait> waits;    // outside the tree
    std::vector<Start> starts;  // of the nodes, in the cheapest schedule
  };
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);

  void build(ModelId model);
  void add_wait(Tree& tree, TensorId tensor, std::size_t producer, std::size_t reader) const;
  void limit_completions();
  void measure_heads_and_tails();
  [[nodiscard]] std::size_t bins_in(double time) const;
  [[nodiscard]] std::size_t near() const { return bins_; }
  [[nodiscard]] std::size_t far() const { return bins_ + 1; }
  [[nodiscard]] std::size_t paid_stride() const { return 2 * bins_ + 4; }
  // The bin that is as much earlier; beyond the horizon it is the same.
  [[nodiscard]] std::size_t earlier(std::size_t bin, std::size_t shift) const {
    return bin < bins_ ? bin - shift : bin;
  }
  [[nodiscard]] std::size_t cell(std::size_t node, std::size_t device, std::size_t bin) const {
    return (node * devices_ + device) * (bins_ + 2) + bin;
  }

  // What bears the work of devices: one of them, or what several share.
  struct Bearers {
    Table<DeviceId, std::size_t> of_device;
    Table<DeviceId, double> amount;  // that an op takes there, but for its share
    std::vector<double> capacity;
    explicit Bearers(const Problem& problem);
  };

  // What an op pays on a device, beside the time that it takes there.
  struct Charge {
    std::size_t bearer = 0;
    double amount = 0;  // that it takes of the bearer
    double length = 0;  // of the op, in bins: whole ones and a part
    std::size_t whole_bins = 0;
    double part = 0;
    double fixed = 0;
    double slope = 0;  // for each bin that it starts later
    double rest = 0;   // from its start to the end of its model, at the least, in bins
  };
  [[nodiscard]] Charge charge(const Tree& tree, const Node& node, std::size_t device) const;
  // The device that a reader takes for its producer's; kNever if none can reach it.
  [[nodiscard]] std::size_t assumed_device(const Tree& tree, const Wait& wait,
                                           std::size_t device) const;
  // What it pays from a moment in a bin: the least over the bin, and where.
  struct Payment {
    double price;
    double moment;  // in bins
  };
  [[nodiscard]] Payment least_payment(const Charge& charge, std::size_t bin) const;
  // Beyond the horizon.
  [[nodiscard]] Payment late_payment(const Tree& tree, const Charge& charge, std::size_t bin) const;

  double cheapest(Tree& tree);
  void fill(const Tree& tree, std::size_t node);
  [[nodiscard]] std::size_t best_source(const Tree& tree, const Input& input, std::size_t device,
                                        std::size_t bin) const;
  void use(Tree& tree, std::size_t node, std::size_t device, std::size_t bin);
  // Both answer the square of the direction's length.
  double measure_use();
  double measure_waits(Tree& tree);
  void change_prices(double bound);

  const Problem& problem_;
  double value_;
  std::size_t devices_;
  Bearers bearers_;
  std::size_t bins_;
  double length_;              // of a bin
  std::vector<double> heads_;  // op x device: earliest start
  Table<OpId, double> tails_;  // from its end, at the fastest
  std::vector<Tree> trees_;
  std::vector<double> prices_;  // bearer x bin, for the whole length of a bin
  // Sums of prices up to the beginning of a bin, as far as an op can reach that starts by the
  // horizon.
  std::vector<double> paid_;
  std::vector<double> use_;           // bearer x bin, in bins; then less what there is
  std::vector<double> least_;         // node x device x bin, of the tree at hand
  std::vector<std::uint32_t> where_;  // the bin of the minimum
  double best_ = 0;
  double pace_ = 1;
  int without_gain_ = 0;
};

}  // namespace placewright
