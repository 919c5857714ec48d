// Exact scheduling of a module (module.h): dynamic programming over partial schedules, with bounds
// and dominance.
//
// A partial schedule grows by one item at a time: an op on a device, or with congestion one leg of
// a transfer. Items come in order of start, each as early as its inputs, its device or ports and
// the start of the item before allow. Every schedule in which nothing can start earlier arises so;
// hence an optimal one does.
//
// Layer by layer (one item more), partial schedules are dropped when
//
//   bound      no completion beats the cutoff: earliest ends of all ops to come, by op and device,
//              with the transfers that the choice makes unavoidable, tails to the end of the module,
//              and for each device and port the work that the cutoff forces on it;
//   dominance  another one has the same items done, everything that is still needed on the same
//              devices, and nothing of it later.
//
// Where a layer is wider than `width` only the most promising are kept, and the least bound of
// those let go joins the answer's lower bound. A narrow search is a good heuristic; one that never
// had to let go is a proof.
//
// A partial schedule is a row of times and a row of marks. Two are compared only where their marks
// are equal; then one dominates where none of its times is later. What nobody will ask for again is
// set to 0 (times, sent) or kNotNeeded (devices of ops), so that it does not keep them apart.
//
//   times  | now | done | lanes of d0, d1, … | out | in | ends | arrivals | on host | memory |
//          0     1      lanes_at_[d]         |     |    |      |          |         memory_at_
//                                            |     |    |      |          host_arrivals_at_
//                                            |     |    |      arrivals_at_
//                                            |     |    ends_at_
//                                            |     in_at_
//                                            out_at_
//     now       start of the last item: no item to come starts earlier
//     done      latest end of the ops that nobody reads
//     lanes     when each is free, ascending within a device
//     out, in   by device, with congestion: when the port is free
//     ends      by op
//     arrivals  by slot of a tensor (one, or one for each device: module.h), with congestion
//     on host   by tensor, host interconnect with congestion: when it is in host memory
//     memory    by device, where memory is part of the module: resident bytes
//
//   marks  | device of each op | sent | left | group |
//          0                   |      |      groups_at_
//                              |      out_marks_at_
//                              sent_at_
//     device    by op: where it runs; kNowhere: not yet
//     sent      by slot, with congestion: 1 (one slot for all devices: 1 + device) when sent
//     left      by tensor, host interconnect with congestion: 1 when it has left its producer
//     group     by colocation group: its device, or kNowhere
//
// Cost: O(edges x devices^2) for each partial schedule, and memory for two layers plus a few bytes
// for each one ever kept. The number of partial schedules is exponential in the width of the
// module, not in its length.

#pragma once

#include <cstdint>
#include <vector>

#include "planners/latency/module.h"
#include "planners/latency/passage_search.h"
#include "problem/plan.h"

namespace placewright {

class ModuleSearch final : public PassageSearch {
 public:
  // Devices of entry and exit; -1 if there is none.
  ModuleSearch(const Module& module, int entry_device, int exit_device);

  [[nodiscard]] double root_bound() override;
  [[nodiscard]] ModuleItems simple_items() override { return {}; }
  // A step of work is a partial schedule expanded.
  ModuleResult run(const PassageGoal& goal, const PassageLimits& limits) override;

  [[nodiscard]] ModuleItems items_of(
      const Plan& plan,
      const Table<TensorId, std::vector<const Transfer*>>& transfers) const override;
  double value_of(const ModuleItems& items) override;
  double replay(const ModuleItems& items, double origin, Plan& plan) override;

 private:
  struct Node {
    std::uint64_t done = 0;  // ops
    double bound = 0;
    std::uint64_t key = 0;
    std::uint32_t parent = 0;
    ModuleItem item;
  };
  struct Step {
    std::uint32_t parent;
    ModuleItem item;
  };
  class Layer;

  struct View {
    double* times;
    std::uint8_t* marks;
  };

  void lay_out();
  void compute_tails();
  void compute_speeds();
  void make_root(Node& node);
  [[nodiscard]] View scratch() { return {scratch_times_.data(), scratch_marks_.data()}; }

  [[nodiscard]] int producer_device(const std::uint8_t* marks, int tensor) const;
  [[nodiscard]] double producer_end(const double* times, int tensor) const;
  [[nodiscard]] bool producer_done(std::uint64_t done, int tensor) const;
  [[nodiscard]] bool is_sent(const std::uint8_t* marks, int tensor, int device) const;
  [[nodiscard]] double presence(const double* times, const std::uint8_t* marks, int tensor,
                                int device) const;
  [[nodiscard]] double earliest_arrival(const double* times, const std::uint8_t* marks, int tensor,
                                        int device) const;
  [[nodiscard]] DeviceMask domain(const double* times, const std::uint8_t* marks, int op) const;

  // A lower bound on every completion of a state, and its steps.
  struct WorkToCome;
  [[nodiscard]] double bound(const double* times, const std::uint8_t* marks, std::uint64_t done);
  [[nodiscard]] double earliest_inputs(const double* times, const std::uint8_t* marks,
                                       std::uint64_t done, int op, int device) const;
  [[nodiscard]] double bound_op(const double* times, const std::uint8_t* marks, std::uint64_t done,
                                int op, WorkToCome& work);
  [[nodiscard]] double raise_to_fit(const WorkToCome& work, double end) const;
  [[nodiscard]] double forced_ports(const double* times, const std::uint8_t* marks,
                                    std::uint64_t done);

  // Apply an item to the scratch state; answers its start.
  double apply(const ModuleItem& item, View view, std::uint64_t& done) const;
  void retire(View view, std::uint64_t done, int tensor) const;

  void expand(const Layer& layer, std::size_t index, Layer& next);
  void offer(const Layer& layer, std::size_t index, const ModuleItem& item, Layer& next);
  void measure_reach(const std::uint8_t* marks, std::uint64_t done);

  const Module& module_;
  int entry_device_;
  int exit_device_;
  std::vector<DeviceMask> allowed_;
  std::vector<double> tails_;     // op x device
  std::vector<double> speeds_;    // by device: 1 where all ops are fastest
  std::vector<double> earliest_;  // op x device, of the state at hand
  std::vector<DeviceMask> feasible_;
  std::vector<std::uint64_t> consumer_sets_;  // by tensor
  std::uint64_t all_done_ = 0;

  // Where the parts of a state begin.
  std::vector<std::size_t> lanes_at_;  // by device
  std::size_t out_at_ = 0;
  std::size_t in_at_ = 0;
  std::size_t ends_at_ = 0;
  std::size_t arrivals_at_ = 0;
  std::size_t host_arrivals_at_ = 0;
  std::size_t memory_at_ = 0;
  std::size_t time_count_ = 0;
  std::size_t sent_at_ = 0;
  std::size_t out_marks_at_ = 0;
  std::size_t groups_at_ = 0;
  std::size_t mark_count_ = 0;

  std::vector<double> longest_moves_;  // tensor x device of the producer
  std::vector<double> reach_;  // how long before the present a time of the state still counts
  std::vector<double> scratch_times_;
  std::vector<std::uint8_t> scratch_marks_;
  double limit_ = kInfinity;
  double best_ = kInfinity;
  Step goal_{};
  std::size_t goal_layer_ = 0;
  std::size_t layer_number_ = 0;
  std::vector<std::vector<Step>> trace_;
};

// A module whose passages are searched so.
class CompiledModule final : public SearchableModule {
 public:
  CompiledModule(const Problem& problem, const CutSegment& segment, bool with_memory)
      : module_(problem, segment, with_memory) {}

  [[nodiscard]] std::string signature() const override { return module_.signature(); }
  [[nodiscard]] std::size_t widest() const override;
  [[nodiscard]] std::unique_ptr<PassageSearch> search(std::size_t entry,
                                                      std::size_t exit) const override;

 private:
  Module module_;
};

}  // namespace placewright
