// IdealFamily: a list of down-sets ("ideals") of a StageModel's blocks, with the sums that make the
// load of a difference cheap.
//
// Members are sorted by work, subsets before supersets, so that a range of work is a range of
// numbers. Of an ideal's bits only the words between the first block it lacks and the last one it
// holds are stored: in long graphs a few words, however many blocks there are.
//
// For an ideal I the family keeps work(I), compute times for each class, bytes, how many blocks
// each class cannot run, and above(I) = the transfers of the stage "all blocks not in I". For J
// inside I
//
//   transfers(I \ J) = above(J)
//                      + sum over nets e cut by I of (cost of e for I \ J - cost of e for all \ J)
//
// since a net that I does not cut lies inside I (both terms agree) or outside (both are 0).
//
// Two ways to make one: `all_ideals` within windows of work, by "take v / drop v with all its
// descendants" (no hashing, each ideal once, a subtree is left when its range of work meets no
// window), and `prefixes` of given orders.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planners/methods/stage_model.h"
#include "planners/planner.h"

namespace placewright::throughput {

// Closed range of work.
struct WorkWindow {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

class IdealFamily {
 public:
  // Disjoint ascending windows. Nullopt if there would be more than `limit` ideals, or if asked
  // to stop.
  static std::optional<IdealFamily> all_ideals(const StageModel& model,
                                               std::span<const WorkWindow> windows,
                                               std::size_t limit, Control& control);
  // All prefixes of the orders (of block numbers); the empty and the full one once. Some of them
  // if asked to stop.
  static IdealFamily prefixes(const StageModel& model,
                              std::span<const std::vector<std::uint32_t>> orders, Control& control);

  [[nodiscard]] std::size_t size() const { return work_.size(); }
  [[nodiscard]] const StageModel& model() const { return *model_; }
  [[nodiscard]] std::span<const std::int64_t> work() const { return work_; }

  [[nodiscard]] bool contains(std::size_t ideal, std::uint32_t block) const {
    const std::uint32_t word = block / 64;
    const Bits& bits = bits_[ideal];
    if (word < bits.first_word) return true;
    if (word >= bits.end_word) return false;
    return (words_[bits.offset + word - bits.first_word] >> (block % 64) & 1U) != 0;
  }
  // Whether every block of `inner` is in `outer`.
  [[nodiscard]] bool includes(std::size_t outer, std::size_t inner) const;

  [[nodiscard]] double forward(std::size_t ideal, std::size_t device_class) const {
    return times_[(ideal * model_->classes().size() + device_class) * 2];
  }
  [[nodiscard]] double backward(std::size_t ideal, std::size_t device_class) const {
    return times_[(ideal * model_->classes().size() + device_class) * 2 + 1];
  }
  [[nodiscard]] double bytes(std::size_t ideal) const { return bytes_[ideal]; }
  [[nodiscard]] std::uint32_t forbidden(std::size_t ideal, std::size_t device_class) const {
    return forbidden_[ideal * model_->classes().size() + device_class];
  }
  [[nodiscard]] const double* above(std::size_t ideal) const {
    return above_.data() + ideal * model_->slot_count();
  }

  // Nets with a block in the ideal and one outside, appended to `cut`.
  void cut_nets(std::size_t ideal, std::vector<std::uint32_t>& cut) const;
  // The blocks of outer that are not in inner.
  [[nodiscard]] std::vector<std::uint32_t> difference(std::size_t outer, std::size_t inner) const;

 private:
  friend class IdealCollector;

  struct Bits {
    std::size_t offset = 0;
    std::uint32_t first_word = 0;  // all ones before it
    std::uint32_t end_word = 0;    // all zeros from it on
  };

  explicit IdealFamily(const StageModel& model);
  void sort();

  const StageModel* model_;
  std::vector<std::uint64_t> words_;
  std::vector<Bits> bits_;
  std::vector<std::int64_t> work_;
  std::vector<std::uint32_t> block_counts_;
  std::vector<double> times_;
  std::vector<double> bytes_;
  std::vector<std::uint32_t> forbidden_;
  std::vector<double> above_;
  std::vector<std::vector<std::uint32_t>> nets_by_word_;  // nets whose blocks span a word
};

// Linear extensions of the blocks: depth first from the start, depth first from the end, breadth
// first, least cut first, and `random` ones more.
std::vector<std::vector<std::uint32_t>> linear_orders(const StageModel& model, std::size_t random,
                                                      std::uint64_t seed);

}  // namespace placewright::throughput
