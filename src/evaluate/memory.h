// Resident memory: what the ops placed on the devices of a memory space occupy all the time.
//
//   resident(s) = sum of memory(v) over ops v on devices of s + sum of bytes(w) over shared weights
//                 w that some op there reads, each once
//
// A placement is within memory when resident(s) <= memory(s) in every space, up to a relative
// tolerance (semantics.md, "Memory"). MemoryLedger keeps the sums while ops come and go: O(1) per
// op, plus O(shared weights it reads). It needs O(spaces) memory, and O(weights x spaces) counts
// only where the problem shares weights at all. Most spaces have one device, so questions are asked
// by device.

#pragma once

#include <cstdint>
#include <vector>

#include "problem/problem.h"

namespace placewright {

inline constexpr double kMemoryTolerance = 1e-9;

// Whether `bytes` are within `capacity`, up to the tolerance.
constexpr bool within_memory(double bytes, double capacity) {
  return bytes <= capacity * (1 + kMemoryTolerance);
}

class MemoryLedger {
 public:
  // All spaces empty. The problem must outlive the ledger.
  explicit MemoryLedger(const Problem& problem);
  // As the placement says; ops without a valid device are nowhere.
  MemoryLedger(const Problem& problem, const Placement& placement);

  [[nodiscard]] double used(SpaceId space) const { return used_[space]; }
  // Of the memory space that the device is in.
  [[nodiscard]] double used(DeviceId device) const { return used(problem_->space(device)); }
  // What is left; below zero when too much is there.
  [[nodiscard]] double free(DeviceId device) const { return capacity(device) - used(device); }
  [[nodiscard]] double capacity(DeviceId device) const {
    return problem_->space_memory(problem_->space(device));
  }
  [[nodiscard]] bool within(DeviceId device) const {
    return within_memory(used(device), capacity(device));
  }
  // Whether every space is within its memory.
  [[nodiscard]] bool within() const;

  // What the use of the device's space would grow by. The op, or the ops of the group, must not be
  // there yet.
  [[nodiscard]] double growth(OpId op, DeviceId device) const;
  [[nodiscard]] double growth(GroupId group, DeviceId device) const;
  [[nodiscard]] bool fits(OpId op, DeviceId device) const {
    return within_memory(used(device) + growth(op, device), capacity(device));
  }
  [[nodiscard]] bool fits_group(GroupId group, DeviceId device) const {
    return within_memory(used(device) + growth(group, device), capacity(device));
  }

  void add(OpId op, DeviceId device);
  void remove(OpId op, DeviceId device);
  void add_group(GroupId group, DeviceId device);
  void remove_group(GroupId group, DeviceId device);

 private:
  std::uint32_t& readers(WeightId weight, SpaceId space) {
    return readers_[weight.index() * used_.size() + space.index()];
  }
  [[nodiscard]] bool is_read(WeightId weight, SpaceId space) const {
    return readers_[weight.index() * used_.size() + space.index()] > 0;
  }

  const Problem* problem_;
  Table<SpaceId, double> used_;
  Table<SpaceId, std::uint32_t> ops_;
  Table<GroupId, double> group_memory_;    // without shared weights
  Rows<GroupId, WeightId> group_weights_;  // each weight of a group once
  std::vector<std::uint32_t> readers_;     // weight x space: ops there that read it
};

// By device, of its space.
Table<DeviceId, double> resident_memory(const Problem& problem, const Placement& placement);

bool memory_fits(const Problem& problem, const Placement& placement);

}  // namespace placewright
