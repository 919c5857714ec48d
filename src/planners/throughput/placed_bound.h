// What every pipeline costs at least that has some ops on these devices, the others being anywhere.
//
// Let L(d) be the load of what is placed on d, both passes together, with the transfers and cut
// overheads between placed ops (they stay, wherever the others go), s(d) the largest share of an op
// placed there, R the most replicas of a stage. The period is at least
//
//   L(d) / R                                              of each device
//   sum over d of L(d) s(d) amount(d, r) / (capacity(r) R)   of each resource: who holds it, and how long
//   (sum over d of L(d) s(d) amount(kind of d)
//    + sum over groups not placed of their least energy) / capacity of all pools
//
// where the energy of a group is time x share x amount on a kind of device, and kinds on which the
// group alone takes as long as the best plan known do not count (bounds/pools.h; replicas take r
// times the amount for a part 1/r of the load, so they change no energy). A phased value, the sum
// of two periods, is no less than what both passes need together. O(ops + edges) for each question.

#pragma once

#include <span>
#include <vector>

#include "bounds/pools.h"
#include "problem/problem.h"

namespace placewright::throughput {

class PlacedBound {
 public:
  // Groups will be placed in this order. The problem must outlive the bound.
  PlacedBound(const Problem& problem, std::span<const GroupId> order);

  // Only plans below this value are asked for from now on.
  void look_below(double value);

  // The first `placed` groups of the order are placed, the others have no device.
  [[nodiscard]] double operator()(const Placement& placement, std::size_t placed) const;

 private:
  const Problem& problem_;
  std::vector<GroupId> order_;
  Pools pools_;
  double capacity_ = 0;  // of all pools
  double most_replicas_;
  bool spaces_are_single_;      // each device is in a memory of its own
  std::vector<double> energy_;  // group x kind, in the order; infinite: not allowed
  std::vector<double> time_;    // the same
  std::vector<double> rest_;    // by how many are placed: least energy of the others
};

}  // namespace placewright::throughput
