// Problem: a checked, frozen placement problem.
//
//   graphs (ops, tensors)  +  cluster (devices, interconnect)  +  objective and rules
//
// Everything a planner asks in an inner loop is an array look-up: times by op and device, the
// tensors of an op, the consumers of a tensor, transfer times. The constructor checks the
// invariants below and throws InvalidProblem naming the noun that breaks one; after that no room
// needs to check them again.
//
//   * there is at least one device and one model; every kind, op, device, model name is unique
//   * the graph is acyclic; a tensor's producer and consumers exist, belong to one model, are
//     distinct
//   * numbers are finite and not negative (memory and bandwidth may be infinite, times
//     "unsupported"); every op is supported by some device it may use
//   * a device that uses resources has one lane; the devices of a memory space are all host devices
//     or all accelerators, and reach those of another space by like links
//   * `call-latency` has a host interconnect and at most one host device

#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "placewright/problem/draft.h"
#include "placewright/problem/feature.h"
#include "placewright/problem/ids.h"
#include "placewright/problem/objective.h"

namespace placewright {

// Which record of the draft is at fault, so that a reader can name the place in its file.
enum class DraftPart {
  problem,
  kind,
  resource,
  space,
  device,
  link,
  model,
  op,
  tensor,
  colocation,
  shared_weight
};

class InvalidProblem : public std::runtime_error {
 public:
  InvalidProblem(DraftPart part, std::size_t index, const std::string& message)
      : std::runtime_error(message), part_(part), index_(index) {}

  [[nodiscard]] DraftPart part() const { return part_; }
  [[nodiscard]] std::size_t index() const { return index_; }

 private:
  DraftPart part_;
  std::size_t index_;
};

// op -> device
using Placement = Table<OpId, DeviceId>;

class Problem {
 public:
  explicit Problem(ProblemDraft draft);

  // Frozen arrays point into the draft, so a problem moves but is never copied.
  Problem(Problem&&) = default;
  Problem& operator=(Problem&&) = default;
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;
  ~Problem() = default;

  // The draft it was made from; names and other things that no inner loop needs.
  [[nodiscard]] const ProblemDraft& draft() const& { return draft_; }
  // Of a problem that is not needed any more: the draft itself, not a copy.
  [[nodiscard]] ProblemDraft draft() && { return std::move(draft_); }
  [[nodiscard]] const std::string& name() const { return draft_.name; }
  [[nodiscard]] TimeUnit unit() const { return draft_.unit; }
  [[nodiscard]] Objective objective() const { return draft_.objective; }
  [[nodiscard]] const Rules& rules() const { return draft_.rules; }
  [[nodiscard]] InterconnectKind interconnect() const { return draft_.cluster.interconnect; }
  // What it asks of whoever plans for it.
  [[nodiscard]] Features features() const { return features_; }

  [[nodiscard]] std::size_t op_count() const { return draft_.ops.size(); }
  [[nodiscard]] std::size_t tensor_count() const { return draft_.tensors.size(); }
  [[nodiscard]] std::size_t device_count() const { return draft_.cluster.devices.size(); }
  [[nodiscard]] std::size_t kind_count() const { return draft_.cluster.kinds.size(); }
  [[nodiscard]] std::size_t model_count() const { return draft_.models.size(); }
  [[nodiscard]] std::size_t edge_count() const { return successors_.value_count(); }
  [[nodiscard]] IdRange<OpId> ops() const { return ids<OpId>(op_count()); }
  [[nodiscard]] IdRange<TensorId> tensors() const { return ids<TensorId>(tensor_count()); }
  [[nodiscard]] IdRange<DeviceId> devices() const { return ids<DeviceId>(device_count()); }
  [[nodiscard]] IdRange<ModelId> models() const { return ids<ModelId>(model_count()); }

  [[nodiscard]] const Op& op(OpId id) const { return draft_.ops[id.index()]; }
  [[nodiscard]] const Tensor& tensor(TensorId id) const { return draft_.tensors[id.index()]; }
  [[nodiscard]] const Device& device(DeviceId id) const {
    return draft_.cluster.devices[id.index()];
  }
  [[nodiscard]] const Model& model(ModelId id) const { return draft_.models[id.index()]; }
  [[nodiscard]] KindId kind_of(DeviceId id) const { return device(id).kind; }

  [[nodiscard]] std::optional<OpId> find_op(std::string_view name) const;
  [[nodiscard]] std::optional<DeviceId> find_device(std::string_view name) const;

  // The graph.
  [[nodiscard]] std::span<const TensorId> inputs(OpId op) const { return inputs_[op]; }
  [[nodiscard]] std::span<const TensorId> outputs(OpId op) const { return outputs_[op]; }
  [[nodiscard]] std::span<const OpId> consumers(TensorId id) const { return consumers_[id]; }
  [[nodiscard]] OpId producer(TensorId id) const { return producers_[id]; }
  [[nodiscard]] std::span<const OpId> predecessors(OpId op) const { return predecessors_[op]; }
  [[nodiscard]] std::span<const OpId> successors(OpId op) const { return successors_[op]; }
  [[nodiscard]] std::span<const OpId> topological_order() const { return topological_order_; }
  [[nodiscard]] std::size_t topological_rank(OpId op) const { return topological_rank_[op]; }
  [[nodiscard]] bool has_backward_ops() const { return has_backward_ops_; }

  // Times. `time` is kUnsupported where the device cannot run the op; `allowed` also respects pins.
  [[nodiscard]] double time(OpId op, DeviceId device) const {
    return times_[op.index() * kind_count() + kind_index_[device]];
  }
  [[nodiscard]] bool allowed(OpId op, DeviceId device) const {
    const DeviceId pin = pins_[op];
    return time(op, device) < kUnsupported && (!pin.valid() || pin == device);
  }

  // Transfers. Host: `host_time`, once out of and once into an accelerator; host devices move
  // nothing. Links: `link_time`; kInfinity where two devices have no link, 0 from a device to
  // itself.
  [[nodiscard]] bool on_host(DeviceId device) const { return on_host_[device]; }
  [[nodiscard]] double host_time(TensorId id) const { return host_times_[id]; }
  [[nodiscard]] double link_time(TensorId id, DeviceId from, DeviceId to) const {
    const std::size_t pair = from.index() * device_count() + to.index();
    const double* table = link_tables_[id];
    if (table != nullptr) return table[pair];
    return link_latency_[pair] + bytes_[id] * link_inverse_bandwidth_[pair];
  }
  // Whether a tensor produced on `from` can be read on `to` at all.
  [[nodiscard]] bool reachable(TensorId id, DeviceId from, DeviceId to) const {
    return interconnect() == InterconnectKind::host || link_time(id, from, to) < kInfinity;
  }

  // Shared resources and memory spaces. Every device is in one space; most have one of their own.
  [[nodiscard]] std::size_t resource_count() const { return draft_.cluster.resources.size(); }
  [[nodiscard]] IdRange<ResourceId> resources() const { return ids<ResourceId>(resource_count()); }
  [[nodiscard]] const Resource& resource(ResourceId id) const {
    return draft_.cluster.resources[id.index()];
  }
  [[nodiscard]] std::span<const ResourceUse> uses(DeviceId id) const { return device(id).uses; }
  // What the op takes of a resource of the device, relative to the device's amount.
  [[nodiscard]] double share(OpId op, DeviceId device) const {
    return shares_.empty() ? 1 : shares_[op.index() * kind_count() + kind_index_[device]];
  }
  [[nodiscard]] std::size_t space_count() const { return space_memory_.size(); }
  [[nodiscard]] IdRange<SpaceId> spaces() const { return ids<SpaceId>(space_count()); }
  [[nodiscard]] SpaceId space(DeviceId device) const { return space_[device]; }
  [[nodiscard]] double space_memory(SpaceId space) const { return space_memory_[space]; }
  // As messages call it: the name of the space, or of its only device.
  [[nodiscard]] const std::string& space_name(SpaceId space) const;
  [[nodiscard]] bool same_space(DeviceId a, DeviceId b) const { return space_[a] == space_[b]; }
  [[nodiscard]] bool has_shared_spaces() const { return has_shared_spaces_; }
  [[nodiscard]] bool has_sharing() const { return resource_count() > 0 || has_shared_spaces(); }

  // The overheads of handing a tensor out of a device, and of taking it in.
  [[nodiscard]] double send_overhead(TensorId tensor, DeviceId device) const {
    const CutOverhead* cut = cut_of(tensor, device);
    return cut != nullptr ? cut->send : this->device(device).send_overhead;
  }
  [[nodiscard]] double receive_overhead(TensorId tensor, DeviceId device) const {
    const CutOverhead* cut = cut_of(tensor, device);
    return cut != nullptr ? cut->receive : this->device(device).receive_overhead;
  }
  [[nodiscard]] bool has_overheads() const { return has_overheads_; }
  // Whether some tensor states its own overheads; else they are those of the devices.
  [[nodiscard]] bool has_tensor_cuts() const { return has_tensor_cuts_; }

  // Colocation: every op belongs to one group; most groups have one op. A pin on one op of a
  // group pins them all.
  [[nodiscard]] std::size_t group_count() const { return group_ops_.size(); }
  [[nodiscard]] IdRange<GroupId> groups() const { return ids<GroupId>(group_count()); }
  [[nodiscard]] GroupId group(OpId op) const { return groups_[op]; }
  [[nodiscard]] std::span<const OpId> group_ops(GroupId group) const { return group_ops_[group]; }
  [[nodiscard]] bool group_allowed(GroupId group, DeviceId device) const;

  // Resident memory of one op without what it shares, and the shared weights it reads.
  [[nodiscard]] double memory(OpId op) const { return memory_[op]; }
  [[nodiscard]] std::span<const WeightId> shared_weights(OpId op) const { return op_weights_[op]; }
  [[nodiscard]] std::size_t shared_weight_count() const { return draft_.shared_weights.size(); }
  [[nodiscard]] double shared_weight_bytes(WeightId id) const {
    return draft_.shared_weights[id.index()].bytes;
  }

 private:
  void check_names_and_numbers() const;
  void check_cluster() const;
  void check_resources() const;
  void build_spaces();
  void check_links_of_spaces() const;
  void build_graph();
  void build_groups();
  void build_costs();
  void build_cuts();
  void check_support() const;
  [[nodiscard]] Features features_asked() const;
  [[nodiscard]] const CutOverhead* cut_of(TensorId tensor, DeviceId device) const;

  ProblemDraft draft_;
  std::unordered_map<std::string_view, OpId> op_by_name_;

  Rows<OpId, TensorId> inputs_;
  Rows<OpId, TensorId> outputs_;
  Rows<TensorId, OpId> consumers_;
  Rows<OpId, OpId> predecessors_;
  Rows<OpId, OpId> successors_;
  Table<TensorId, OpId> producers_;
  std::vector<OpId> topological_order_;
  Table<OpId, std::size_t> topological_rank_;
  bool has_backward_ops_ = false;
  Features features_;

  std::vector<double> times_;
  Table<DeviceId, std::size_t> kind_index_;
  Table<DeviceId, char> on_host_;
  Table<OpId, DeviceId> pins_;
  Table<OpId, double> memory_;
  Table<TensorId, double> bytes_;
  Table<TensorId, double> host_times_;
  Table<TensorId, const double*> link_tables_;
  std::vector<double> link_latency_;
  std::vector<double> link_inverse_bandwidth_;

  std::vector<double> shares_;  // op x kind; empty: all are 1
  Table<DeviceId, SpaceId> space_;
  Table<SpaceId, double> space_memory_;
  Table<SpaceId, DeviceId> space_device_;  // its first
  bool has_shared_spaces_ = false;
  bool has_overheads_ = false;
  bool has_tensor_cuts_ = false;

  Table<OpId, GroupId> groups_;
  Rows<GroupId, OpId> group_ops_;
  Rows<OpId, WeightId> op_weights_;
};

}  // namespace placewright
