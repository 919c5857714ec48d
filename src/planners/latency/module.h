// A module: a small part of a problem that is scheduled by itself, compiled into flat arrays.
//
// The ops of one segment between two cut nodes (coarsen/cut_nodes.h), numbered in topological
// order, with the tensors they read. The entry, if there is one, has ended at time 0 on a given
// device; the exit, if there is one, runs on a given device. Without entry and exit a module is a
// whole problem.
//
// Cut overheads are left out: with them the module is a relaxation.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coarsen/cut_nodes.h"
#include "problem/problem.h"

namespace placewright {

using DeviceMask = std::uint32_t;  // a bit for each device

class Module {
 public:
  static constexpr std::size_t kMaxOps = 64;
  static constexpr std::size_t kMaxDevices = 16;
  static constexpr int kEntry = -1;  // the producer of a tensor that comes from before

  struct TensorRecord {
    TensorId id;
    int producer = kEntry;
    std::vector<int> consumers;
    int slot = 0;        // where a search notes its arrivals: one place, or one per device
    bool single = true;  // one consumer
  };

  static bool fits(const Problem& problem, const CutSegment& segment) {
    return segment.ops.size() <= kMaxOps && problem.device_count() <= kMaxDevices;
  }

  // `with_memory`: resident memory is part of the module (it is the whole problem then).
  Module(const Problem& problem, const CutSegment& segment, bool with_memory);

  // All that a schedule depends on: modules with equal signatures have the same schedules, op by
  // op.
  [[nodiscard]] std::string signature() const;

  [[nodiscard]] std::size_t op_count() const { return ops.size(); }
  [[nodiscard]] double time(int op, int device) const {
    return times[static_cast<std::size_t>(op) * devices + static_cast<std::size_t>(device)];
  }
  // From the producer's end on one device to the tensor's arrival on another when no port is busy.
  [[nodiscard]] double move(int tensor, int from, int to) const {
    return moves[(static_cast<std::size_t>(tensor) * devices + static_cast<std::size_t>(from)) *
                     devices +
                 static_cast<std::size_t>(to)];
  }
  // How long a transfer occupies the sender's and the receiver's port.
  [[nodiscard]] double out_length(int tensor, int from, int to) const {
    return host && on_host[static_cast<std::size_t>(from)] ? 0 : length(tensor, from, to);
  }
  [[nodiscard]] double in_length(int tensor, int from, int to) const {
    return host && on_host[static_cast<std::size_t>(to)] ? 0 : length(tensor, from, to);
  }

  const Problem* problem;
  std::size_t devices;
  bool congestion;
  bool host;
  bool with_memory;
  bool has_entry;
  int exit;  // -1: none
  std::vector<OpId> ops;
  std::vector<TensorRecord> tensors;
  std::vector<std::vector<int>> inputs;   // by op
  std::vector<std::vector<int>> outputs;  // by op
  std::vector<int> entry_outputs;
  std::vector<std::uint64_t> predecessors;  // by op, as a set
  std::vector<DeviceMask> allowed;          // by op
  std::vector<double> release;              // by op
  std::vector<int> group;                   // by op; -1: alone
  int entry_group = -1;
  int group_count = 0;
  std::vector<double> times;  // op x device
  std::vector<double> moves;  // tensor x device x device
  std::vector<double> host_times;
  std::vector<bool> on_host;
  std::vector<int> lanes;      // by device
  std::vector<double> memory;  // by op
  std::vector<double> capacity;
  std::size_t slot_count = 0;

 private:
  [[nodiscard]] double length(int tensor, int from, int to) const {
    return host ? host_times[static_cast<std::size_t>(tensor)] : move(tensor, from, to);
  }
  void add_ops(const CutSegment& segment);
  void add_tensors(const CutSegment& segment);
  void add_groups(const CutSegment& segment);
};

}  // namespace placewright
