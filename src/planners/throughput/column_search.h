// ColumnSearch: the least load of a device whose blocks are worth at least so much; the pricing
// problem of the configuration bound.
//
//   least_load(p) = least load(S) over sets S of blocks with sum of prizes >= p
//
// Blocks need not be contiguous. They are decided one after the other along an order; what the
// past means for the future is the state of the nets that are still open (some block of it decided,
// some not):
//
//   producer decided    its readers so far are all on the same side as the producer, or it is paid
//   producer to come    readers so far are all inside, all outside, or on both sides
//
// Transformers, residual nets and recurrent ones have few open nets at a time, so few states. Where
// there are more than a limit, the cheapest open net loses the readers beyond that place: then
// loads are lower bounds. Prizes are whole numbers, so a table over prizes holds least loads
// without any rounding of times.
//
// Time of a search: states x prizes, each one addition and one comparison; memory: two bytes for
// each, to read the sets off.
//
// Only sequential transfers have nets here; for the other modes the load is taken as compute alone,
// a lower bound. Memory of devices is not looked at.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/methods/stage_model.h"
#include "planners/planner.h"

namespace placewright::throughput {

class ColumnSearch {
 public:
  // For a device of this class, with at most so many states at a place. The model must outlive the
  // search.
  ColumnSearch(const StageModel& model, std::size_t device_class, std::size_t most_states);

  // Tables for prizes up to `most_prize` (what is worth more counts as that much) and loads up to
  // `most_load`. False: asked to stop, and there are no tables.
  bool run(std::span<const std::uint32_t> prizes, std::uint32_t most_prize, double most_load,
           Control& control);

  [[nodiscard]] std::uint32_t most_prize() const { return most_prize_; }
  // Infinite where there is no such set below the most load.
  [[nodiscard]] double least_load(std::uint32_t prize) const { return best_[prize]; }
  // The largest prize within a load.
  [[nodiscard]] std::uint32_t best_prize(double load) const;
  // The set behind least_load(prize), which must be finite; the prize below the most, for there
  // sums are cut off.
  [[nodiscard]] std::vector<std::uint32_t> column(std::uint32_t prize) const;

  // Entries of all tables for each prize.
  [[nodiscard]] std::size_t state_count() const { return states_; }

 private:
  struct OpenNet {
    double in = 0;
    double out = 0;
    std::uint32_t producer = 0;          // place in the order
    std::vector<std::uint32_t> readers;  // places, ascending
    [[nodiscard]] std::uint32_t first() const;
    [[nodiscard]] std::uint32_t last() const;
  };

  // From one state to the next by leaving the block out, or taking it in.
  struct Step {
    std::uint32_t outside = 0;
    std::uint32_t inside = 0;
    double outside_cost = 0;
    double inside_cost = 0;  // without the block's own time
  };

  void choose_order();
  void collect_nets();
  bool build_states();
  void shorten_cheapest(std::uint32_t place);
  [[nodiscard]] std::uint64_t widths(std::span<const std::uint32_t> order) const;

  const StageModel& model_;
  const DeviceClass& class_;
  std::vector<std::uint32_t> order_;  // blocks
  std::vector<OpenNet> nets_;
  std::vector<std::vector<Step>> steps_;  // by place, then by state before the block
  std::size_t states_ = 0;
  std::size_t most_states_;

  std::uint32_t most_prize_ = 0;
  std::vector<std::uint32_t> prizes_;
  std::vector<std::vector<std::uint16_t>> came_from_;  // by place: state x prize
  std::vector<double> best_;
};

}  // namespace placewright::throughput
