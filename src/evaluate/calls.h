// Latency of one sample in device calls (semantics.md, "call-latency").
//
// Nodes: the ops on the host device, any number at once, and the calls of accelerators, one after
// the other on each. A node starts when everything it reads is in host memory and, for a call, the
// previous call of its accelerator has ended; all it makes is in host memory at its end. A call
// over the ops S takes
//
//   sum of c_u over tensors u read from outside S  +  sum of time(v, d) over v in S
//   + sum of c_u over tensors u of S read outside S              (and d's cut overheads)
//
// and the value is the end of the last node: a longest path, O(ops + edges), unless the nodes wait
// for each other in a cycle. Calls and ops that wait so never start: a deadlock. Where devices
// share resources, calls take them in the order in which they become ready.
//
// Reference: J. Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators", NeurIPS 2020 (latency minimisation).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "evaluate/resource_profile.h"
#include "problem/plan.h"
#include "problem/problem.h"

namespace placewright {

// A placement's calls: an op is in the call whose index is the largest number of times that a path
// ending in the op has left the device's set and come back. By device, then in order; without
// times. O((ops + edges) x devices). It asks neither how many calls a device may have nor whether
// they deadlock.
std::vector<Call> split_into_calls(const Problem& problem, const Placement& placement);

// The plan with the times of its calls, in order of start, and the value. The calls of one
// accelerator run in the order given; empty ones are left out. Nullopt if they deadlock. Throws
// std::invalid_argument unless the calls hold every op of the accelerators once, on its device.
std::optional<Plan> call_plan(const Problem& problem, Placement placement, std::vector<Call> calls);

// The latency of many assignments of ops to calls, for inner loops: a few microseconds for a few
// hundred ops, nothing allocated.
//
// An assignment gives each op a slot: kHostSlot, or one of the calls of an accelerator. The calls
// of an accelerator run in the order of their slots; an empty slot is no call.
class CallEvaluator {
 public:
  using Slot = std::int32_t;
  static constexpr Slot kHostSlot = 0;

  // The problem must outlive the evaluator.
  explicit CallEvaluator(const Problem& problem);
  CallEvaluator(const Problem& problem, int calls_per_device);

  [[nodiscard]] Slot slot_count() const { return static_cast<Slot>(slots_.size()); }
  // A host device has kHostSlot only.
  [[nodiscard]] Slot slot(DeviceId device, int call) const {
    return problem_->on_host(device) ? kHostSlot : first_slot_[device] + call;
  }
  // Not valid for kHostSlot where the problem has no host device.
  [[nodiscard]] DeviceId device(Slot slot) const {
    return slots_[static_cast<std::size_t>(slot)].device;
  }

  // Infinite when calls wait for each other in a cycle, a device cannot run its op, or an op is on
  // the host of a problem that has none.
  double latency(std::span<const Slot> slot_of_op);

  // About the assignment evaluated last. Times are those of the node of the op: its call, or itself
  // on the host.
  [[nodiscard]] bool deadlocked() const { return deadlocked_; }
  [[nodiscard]] double start(OpId op) const { return nodes_[node_of_[op.index()]].ready; }
  [[nodiscard]] double end(OpId op) const;
  // The ops of the nodes on one longest path, last node first; empty after a deadlock.
  [[nodiscard]] std::vector<OpId> critical_ops() const;
  // The assignment as a plan; nullopt if it deadlocks or needs a host that is absent.
  [[nodiscard]] std::optional<Plan> plan(std::span<const Slot> slot_of_op);

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct SlotRecord {
    DeviceId device;
    double send_overhead = 0;
    double receive_overhead = 0;
    bool first_of_device = true;
  };

  // A host op, or the call of a slot.
  struct Node {
    double ready = 0;
    double duration = 0;
    std::uint32_t waiting_for = 0;
    std::uint32_t cause = kNone;     // the node that it waited for last
    std::uint32_t first_op = kNone;  // its ops, by next_in_node_
    std::uint32_t next_call = kNone;
    std::uint32_t charged_for = kNone;  // the tensor whose arrival was charged last
  };

  struct TensorRecord {
    TensorId id;
    double host_time = 0;
    std::uint32_t first_consumer = 0;
    std::uint32_t end_consumer = 0;
  };

  [[nodiscard]] std::uint32_t node_of_slot(std::size_t slot) const {
    return static_cast<std::uint32_t>(node_of_.size() + slot);
  }
  void enter_ops(std::span<const Slot> slot_of_op);
  void charge_tensors(std::uint32_t op, Slot slot);
  [[nodiscard]] double send_overhead(const TensorRecord& tensor, std::size_t slot) const {
    return problem_->has_tensor_cuts() ? problem_->send_overhead(tensor.id, slots_[slot].device)
                                       : slots_[slot].send_overhead;
  }
  [[nodiscard]] double receive_overhead(const TensorRecord& tensor, std::size_t slot) const {
    return problem_->has_tensor_cuts() ? problem_->receive_overhead(tensor.id, slots_[slot].device)
                                       : slots_[slot].receive_overhead;
  }
  void chain_calls();
  void start_when_ready();
  void wait_for_resources(std::uint32_t node);
  void finish(std::uint32_t node, double end);
  void release(std::uint32_t node, std::uint32_t cause, double end);

  const Problem* problem_;
  Table<DeviceId, Slot> first_slot_;
  std::vector<SlotRecord> slots_;
  std::vector<double> times_;  // op x (kind, and one column for a host that is not there)
  std::vector<std::uint32_t> kind_of_slot_;
  std::vector<std::uint32_t> first_tensor_;  // by op, and one more; tensors are sorted by producer
  std::vector<TensorRecord> tensors_;
  std::vector<std::uint32_t> consumers_;

  std::vector<std::uint32_t> node_of_;
  std::vector<std::uint32_t> next_in_node_;
  std::vector<Node> nodes_;  // one for each op, then one for each slot
  std::vector<std::uint32_t> queue_;
  ResourceProfiles resources_;
  std::uint32_t last_ = kNone;
  bool deadlocked_ = false;
};

}  // namespace placewright
