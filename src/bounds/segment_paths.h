// Heads and tails in a segment between two cut nodes: critical paths with a device for each op and
// the transfers that the choice makes unavoidable (critical_path.h), from the entry and to the
// exit.
//
// O(edges x devices^3) time, O(ops x devices^2) numbers.

#pragma once

#include <cstddef>
#include <vector>

#include "coarsen/cut_nodes.h"
#include "problem/problem.h"

namespace placewright {

// Ops by their place in the segment, devices of entry and exit by number; 0 where there is none.
class SegmentPaths {
 public:
  SegmentPaths(const Problem& problem, const CutSegment& segment);

  [[nodiscard]] std::size_t entries() const { return segment_.entry.valid() ? devices_ : 1; }
  [[nodiscard]] std::size_t exits() const { return segment_.exit.valid() ? devices_ : 1; }
  [[nodiscard]] const CutSegment& segment() const { return segment_; }
  // Of an op of the segment. Segments are stretches of the topological order.
  [[nodiscard]] std::size_t place(OpId op) const {
    return problem_.topological_rank(op) - problem_.topological_rank(segment_.ops.front());
  }

  // From the end of the entry to the earliest start of the op there. Infinite: it cannot run there.
  [[nodiscard]] double head(std::size_t entry, std::size_t place, DeviceId device) const {
    return heads_[cell(entry, place, device)];
  }
  // From the end of the op there to the end of the exit.
  [[nodiscard]] double tail(std::size_t exit, std::size_t place, DeviceId device) const {
    return tails_[cell(exit, place, device)];
  }
  // The least time from the entry's end to the exit's with the op there.
  [[nodiscard]] double through(std::size_t entry, std::size_t exit, std::size_t place,
                               DeviceId device) const;
  // No passage is shorter.
  [[nodiscard]] double longest(std::size_t entry, std::size_t exit) const;

 private:
  [[nodiscard]] std::size_t cell(std::size_t end, std::size_t place, DeviceId device) const {
    return (end * segment_.ops.size() + place) * devices_ + device.index();
  }
  [[nodiscard]] double arrival(TensorId input, std::size_t entry, DeviceId device) const;
  [[nodiscard]] double rest_after(OpId op, DeviceId device, std::size_t exit) const;
  void measure_heads(std::size_t entry);
  void measure_tails(std::size_t exit);

  const Problem& problem_;
  const CutSegment& segment_;
  std::size_t devices_;
  std::vector<double> heads_;
  std::vector<double> tails_;
};

}  // namespace placewright
