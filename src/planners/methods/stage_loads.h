// Loads of stages I \ J, for one ideal I after the other and any ideals J inside it.
//
// What a stage moves is known from the sums of the family and the nets that I cuts
// (ideal_family.h), which are worked out once for each I. O(nets cut by I) for each load.

#pragma once

#include <cstdint>
#include <vector>

#include "planners/methods/ideal_family.h"
#include "planners/methods/stage_model.h"

namespace placewright::throughput {

class StageLoads {
 public:
  // The family must outlive it.
  explicit StageLoads(const IdealFamily& family)
      : family_(family), model_(family.model()), cut_nets_(model_.profile_count()) {}

  void set_outer(std::size_t ideal) {
    outer_ = ideal;
    cut_known_ = false;
  }

  // Whether a device of the class can run the blocks of I \ J. J must be inside I.
  [[nodiscard]] bool allowed(std::size_t inner, std::size_t device_class) const {
    return family_.forbidden(outer_, device_class) == family_.forbidden(inner, device_class);
  }
  // The same within its memory.
  [[nodiscard]] bool fits(std::size_t inner, std::size_t device_class) const;

  // On so many devices, the first of this class.
  [[nodiscard]] StageLoad load(std::size_t inner, std::size_t device_class, int replicas);

  // Of the transfers that the blocks outside I must pay, at most what moving some of them to cores
  // for `seconds` each could save: a fractional knapsack, in which each block has an equal part in
  // the nets that need it moved.
  [[nodiscard]] double avoidable_transfers(double seconds);

 private:
  struct Movable {
    std::uint32_t block = 0;
    double saving = 0;
    double time = 0;
  };
  // What a cut net asks of J, worked out once for each I.
  struct CutNet {
    double in = 0;
    double out = 0;
    std::uint32_t producer = 0;
    bool produced_inside = false;
    std::uint32_t readers_begin = 0;  // of cut_readers_: the readers in I
    std::uint32_t readers_end = 0;
  };

  [[nodiscard]] bool inside(std::uint32_t block, std::size_t inner) const {
    return family_.contains(outer_, block) && !family_.contains(inner, block);
  }
  [[nodiscard]] double stage_bytes(std::size_t inner) const;
  void find_cut();
  [[nodiscard]] double knapsack(const DeviceClass& core, double capacity);
  [[nodiscard]] Transfers transfers(std::size_t inner, std::size_t profile);
  [[nodiscard]] double single_transfers(std::size_t inner, std::size_t profile);
  void prepare_cut();

  const IdealFamily& family_;
  const StageModel& model_;
  std::size_t outer_ = 0;
  bool cut_known_ = false;
  std::vector<std::uint32_t> cut_;
  std::vector<std::vector<CutNet>> cut_nets_;  // by profile
  std::vector<std::uint32_t> cut_readers_;
  std::vector<Movable> movable_;
};

}  // namespace placewright::throughput
