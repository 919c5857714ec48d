// Resident memory of devices: what the ops placed on a device occupy all the time.
//
//   resident(d) = sum of memory(v) over ops v on d + sum of bytes(w) over shared weights w that
//                 some op on d reads, each once
//
// A placement is within memory when resident(d) <= memory(d) on every device, up to a relative
// tolerance (semantics.md, "Memory"). MemoryLedger keeps the sums while ops come and go: O(1) per
// op, plus O(shared weights it reads). It needs O(devices) memory, and O(weights x devices) counts
// only where the problem shares weights at all.

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
  // All devices empty. The problem must outlive the ledger.
  explicit MemoryLedger(const Problem& problem);
  // As the placement says; ops without a valid device are nowhere.
  MemoryLedger(const Problem& problem, const Placement& placement);

  [[nodiscard]] double used(DeviceId device) const { return used_[device]; }
  // What is left; below zero when too much is there.
  [[nodiscard]] double free(DeviceId device) const { return capacity_[device] - used_[device]; }
  [[nodiscard]] double capacity(DeviceId device) const { return capacity_[device]; }
  [[nodiscard]] bool within(DeviceId device) const {
    return within_memory(used_[device], capacity_[device]);
  }
  // Whether every device is within its memory.
  [[nodiscard]] bool within() const;

  // What the device's use would grow by. The op, or the ops of the group, must not be there yet.
  [[nodiscard]] double growth(OpId op, DeviceId device) const;
  [[nodiscard]] double growth(GroupId group, DeviceId device) const;
  [[nodiscard]] bool fits(OpId op, DeviceId device) const {
    return within_memory(used_[device] + growth(op, device), capacity_[device]);
  }
  [[nodiscard]] bool fits_group(GroupId group, DeviceId device) const {
    return within_memory(used_[device] + growth(group, device), capacity_[device]);
  }

  void add(OpId op, DeviceId device);
  void remove(OpId op, DeviceId device);
  void add_group(GroupId group, DeviceId device);
  void remove_group(GroupId group, DeviceId device);

 private:
  std::uint32_t& readers(WeightId weight, DeviceId device) {
    return readers_[weight.index() * capacity_.size() + device.index()];
  }
  [[nodiscard]] bool is_read(WeightId weight, DeviceId device) const {
    return readers_[weight.index() * capacity_.size() + device.index()] > 0;
  }

  const Problem* problem_;
  Table<DeviceId, double> capacity_;
  Table<DeviceId, double> used_;
  Table<DeviceId, std::uint32_t> ops_;
  Table<GroupId, double> group_memory_;    // without shared weights
  Rows<GroupId, WeightId> group_weights_;  // each weight of a group once
  std::vector<std::uint32_t> readers_;     // weight x device: ops there that read it
};

Table<DeviceId, double> resident_memory(const Problem& problem, const Placement& placement);

bool memory_fits(const Problem& problem, const Placement& placement);

}  // namespace placewright
