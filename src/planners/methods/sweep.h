// Local search over a sequence, in windows: what `search` does all the time.
//
// A solution is a topological order of the ops, a device for each, and for each op whether its
// outputs are sent as soon as they are there (eager) or when the first consumer's turn comes. Taken
// in that order, every activity starts as early as those before it on its device and ports allow.
// So a move may change placement, order and the order of transfers.
//
// A sweep goes through the order from left to right with a window of W ops. Heads (when everything
// left of the window ends) are exact, since the left is settled; tails (the longest way from the
// window's right edge to the end of the schedule) come from one backward pass and stay true while
// the right is unchanged. A move inside the window is judged by re-timing the window alone:
//
//   value = max over what crosses the right edge of head + tail,
//
// O(W + edges at W) for a move, whatever the size of the graph. Where a move changes what the right
// has to send, tails are estimates; the true value is known at the end of each sweep, which costs
// O(ops + edges). `total-completion` has one tail for each model, so there the window is the whole
// order.
//
// The temperature of a sweep is that of all its windows, or it falls within each window, which is
// then left as the best that was seen of it. The first explores small graphs; in a large one the
// windows that got worse hide those that got better, and only the second makes progress.
//
// A sweep may be of a section of the order. Several sweeps can then have a section each, at once
// and from the same sequence, and what they make of their sections is joined: each has heads and
// tails of what the others had before, so the value of the whole is known only when they are
// joined.
//
// Resources that an op takes whole (cores) are like devices that it occupies too, with heads and
// tails of their own. Where ops take parts of a resource (streams of a GPU), its level over time
// has no single head, so there too the window is the whole order.

#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include "evaluate/memory.h"
#include "evaluate/resource_profile.h"
#include "evaluate/rules/starts.h"
#include "evaluate/rules/transfers.h"
#include "planners/random_numbers.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

struct Sequence {
  std::vector<OpId> order;
  Placement placement;
  std::vector<char> eager;  // by op
  double value = kInfinity;
};

class Sweep {
 public:
  Sweep(const Problem& problem, std::uint64_t seed);
  // What one takes, about.
  [[nodiscard]] static double bytes(const Problem& problem);

  // From here on; the placement must be within memory. Answers the value.
  double start_from(const Plan& plan);
  double start_from(const Sequence& sequence);
  [[nodiscard]] const Sequence& current() const { return now_; }

  enum class Cooling { none, within_windows };

  // A stretch of the order, from a place to before another one.
  struct Section {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  // The order in `count` stretches of about the same length, each of whole windows; `shift` moves
  // the borders between them by a part of that length, -0.5 to 0.5.
  [[nodiscard]] std::vector<Section> sections(std::size_t count, double shift) const;
  // Each section as the sweep of the same number has it now; elsewhere they are all equal.
  [[nodiscard]] static Sequence joined(std::span<const Section> sections,
                                       std::span<const Sweep> sweeps);

  // One sweep with `trials` moves for each window of the section. A move that makes the value worse
  // by x is taken with probability exp(-x / temperature). Stops early when `stop(moves)` says so.
  // The true value is in `current()`.
  template <class Stop>
  void run(std::size_t trials, double temperature, const Stop& stop,
           Cooling cooling = Cooling::none) {
    run_section({0, now_.order.size()}, trials, temperature, stop, cooling);
  }
  template <class Stop>
  void run_section(Section section, std::size_t trials, double temperature, const Stop& stop,
                   Cooling cooling) {
    backward();
    begin_forward();
    const bool cools = cooling == Cooling::within_windows;
    bool stopped = false;
    settle(section.begin);
    for (std::size_t first = section.begin; first < section.end; first += step_) {
      open_window(first, section.end);
      if (cools) keep_window();
      for (std::size_t done = 0; done < trials && !stopped; done += kAsk) {
        const double left = 1 - static_cast<double>(done) / static_cast<double>(trials);
        for (std::size_t i = 0; i < kAsk; ++i) {
          try_move(cools ? temperature * left * left : temperature);
          if (cools && value_ < kept_.value) keep_window();
        }
        stopped = stop(kAsk);
      }
      if (cools) restore_window();
      settle(std::min(first + step_, section.end));
    }
    measure();
  }

  // The whole order as one window, or windows again. Where memory binds, ops far apart may have to
  // change places.
  void look_at_whole(bool whole);
  [[nodiscard]] bool memory_binds() const { return memory_binds_; }

  // The schedule of a sequence, re-timed.
  [[nodiscard]] Plan plan_of(const Sequence& sequence);

  [[nodiscard]] bool has_windows() const { return width_ < problem_.op_count(); }
  [[nodiscard]] double mean_time() const { return mean_time_; }

 private:
  static constexpr std::size_t kAsk = 16;

  // Where a pass stands; only the times are ever copied.
  struct Heads {
    explicit Heads(const Problem& problem) : lanes(problem), ports(problem) {}
    void copy_times(const Heads& other);

    LaneTimes lanes;
    std::vector<double> held;  // by resource taken whole: until when
    PortTimes ports;
    std::vector<double> done;  // by model
  };
  struct Tails {
    std::vector<double> device;
    std::vector<double> held;
    std::vector<double> out;
    std::vector<double> in;
  };
  struct Crossing {
    double total;
    OpId consumer;
    bool operator<(const Crossing& other) const { return total < other.total; }
  };

  [[nodiscard]] std::size_t port(DeviceId device) const { return problem_.space(device).index(); }
  [[nodiscard]] std::size_t slot(TensorId tensor, DeviceId device) const {
    return tensor.index() * (spaces_ + 1) + port(device);
  }
  [[nodiscard]] std::size_t host_slot(TensorId tensor) const {
    return tensor.index() * (spaces_ + 1) + spaces_;
  }
  [[nodiscard]] bool known(std::size_t place) const {
    return stamp_[place] == settled_ || stamp_[place] == trial_;
  }

  [[nodiscard]] double duration(OpId op);
  double send(TensorId tensor, OpId sender, DeviceId from, DeviceId to);
  void process(OpId op);
  [[nodiscard]] double occupy(OpId op, DeviceId device, double ready, double length);
  [[nodiscard]] double value_of(const Heads& heads) const;
  [[nodiscard]] double settled_value() const { return value_of(base_); }

  void backward();
  void backward_inputs(OpId op, Tails& tails);
  void backward_outputs(OpId op, Tails& tails);
  double backward_send(TensorId tensor, OpId sender, DeviceId from, DeviceId to, Tails& tails);

  void begin_forward();
  void open_window(std::size_t first, std::size_t end);
  void keep_window();
  void restore_window();
  void settle(std::size_t last);
  void measure();
  // Infinite where it is known to be above `most` before all of the window is timed.
  double evaluate(double most = kInfinity);

  void try_move(double temperature);
  bool move_block();
  [[nodiscard]] DeviceId target(std::span<const DeviceId> around);
  bool move_in_order();
  bool flip_eager();
  bool swap_devices();
  bool move_stretch();
  DeviceId nearest_free(OpId op, std::span<const DeviceId> crew, std::vector<double>& load) const;
  bool place(OpId op, DeviceId device);
  void undo();
  [[nodiscard]] bool movable(OpId op) const;
  OpId pick() { return now_.order[first_ + random_.below(last_ - first_)]; }
  void rotate(std::size_t from, std::size_t to);

  const Problem& problem_;
  std::size_t devices_;
  std::size_t spaces_;
  std::vector<std::vector<DeviceId>> crews_;  // by kind: devices that share resources with others
  bool takes_whole_;                          // every op takes all of each resource of its device
  bool host_;
  bool congestion_;
  bool has_overheads_;
  bool memory_binds_;
  bool total_completion_;
  std::size_t width_;
  std::size_t step_;
  double mean_time_ = 0;
  RandomNumbers random_;
  MemoryLedger ledger_;

  Sequence now_;
  std::vector<std::size_t> position_;      // by op
  std::vector<std::uint64_t> sent_stamp_;  // by space: the last tensor that was sent there
  std::uint64_t last_sent_stamp_ = 0;

  // Forward: ends of ops, arrivals of tensors on devices (and in host memory), valid when stamped.
  std::vector<double> start_;
  std::vector<double> end_;
  std::vector<double> arrival_;
  std::vector<std::uint32_t> stamp_;
  std::vector<OpId> sender_;  // whose turn sent the tensor there, in the last settled pass
  std::uint32_t settled_ = 0;
  std::uint32_t trial_ = 0;
  std::uint32_t last_stamp_ = 0;
  std::uint32_t writing_ = 0;
  Heads base_;               // at the window's left edge
  Heads state_;              // while processing
  ResourceProfiles levels_;  // of resources that are taken in parts
  std::priority_queue<Crossing> crossing_;
  double crossing_value_ = 0;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
  double value_ = kInfinity;  // of the window as it is
  std::vector<Transfer>* recorder_ = nullptr;

  // Backward.
  std::vector<double> op_tail_;       // from its start
  std::vector<double> after_end_;     // of an op, by its consumers seen so far
  std::vector<double> arrival_tail_;  // by slot
  std::vector<double> send_tail_;     // by slot: from the end of the transfer on; < 0: not sent
  std::vector<Tails> tails_at_;       // by window edge

  // The window as it was best.
  struct Kept {
    std::vector<OpId> order;
    std::vector<DeviceId> devices;  // as in `order`
    std::vector<char> eager;
    double value = kInfinity;
  };
  Kept kept_;

  // The last move, to be undone.
  std::vector<std::pair<OpId, DeviceId>> moved_;
  std::size_t rotated_from_ = 0;
  std::size_t rotated_to_ = 0;
  OpId flipped_;
  std::vector<OpId> block_;
  std::vector<DeviceId> around_;
};

}  // namespace placewright
