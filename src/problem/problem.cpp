#include "problem/problem.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "problem/largest_number.h"

namespace placewright {
namespace {

[[noreturn]] void reject(DraftPart part, std::size_t index, const std::string& message) {
  throw InvalidProblem(part, index, message);
}

// "memory of op 'conv' is -1, expected a number from 0 to 1e+100"
struct NumberCheck {
  DraftPart part;
  std::size_t index;
  std::string_view noun;
  std::string_view name;

  void finite(std::string_view what, double value) const {
    if (!(value >= 0 && value <= kLargestNumber)) fail(what, value);
  }
  void finite_or_infinite(std::string_view what, double value) const {
    if (value != kInfinity) finite(what, value);
  }

 private:
  [[noreturn]] void fail(std::string_view what, double value) const {
    reject(part, index,
           fmt::format("{} of {} '{}' is {}, expected a number from 0 to {}", what, noun, name,
                       value, kLargestNumber));
  }
};

template <class Record>
void check_unique_names(const std::vector<Record>& records, DraftPart part, std::string_view noun) {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].name.empty()) reject(part, i, fmt::format("{} {} has no name", noun, i));
    const auto [first, inserted] = seen.emplace(records[i].name, i);
    if (!inserted) {
      reject(part, i,
             fmt::format("two {}s are called '{}' (numbers {} and {})", noun, records[i].name,
                         first->second, i));
    }
  }
}

// One cycle among the ops that a topological sort could not reach, as "'a' -> 'b' -> 'a'".
std::string describe_cycle(const ProblemDraft& draft, const Rows<OpId, OpId>& predecessors,
                           const Table<OpId, std::size_t>& missing) {
  OpId walker;
  for (const OpId op : missing.keys()) {
    if (missing[op] > 0) walker = op;
  }
  // Every op left over has a predecessor left over, so walking backwards must repeat an op.
  Table<OpId, std::size_t> visited(missing.size(), 0);
  std::vector<OpId> path;
  while (visited[walker] == 0) {
    path.push_back(walker);
    visited[walker] = path.size();
    for (const OpId previous : predecessors[walker]) {
      if (missing[previous] > 0) {
        walker = previous;
        break;
      }
    }
  }
  std::vector<OpId> cycle(path.begin() + static_cast<std::ptrdiff_t>(visited[walker] - 1),
                          path.end());
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  cycle.push_back(cycle.front());
  constexpr std::size_t kShown = 12;
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > kShown + 2 && i == kShown) {
      text += fmt::format(" -> … ({} more)", cycle.size() - kShown - 1);
      i = cycle.size() - 1;
    }
    text += fmt::format("{}'{}'", i == 0 ? "" : " -> ", draft.ops[cycle[i].index()].name);
  }
  return text;
}

// Kahn's algorithm with a first-in first-out queue: breadth first, ties by op number.
std::vector<OpId> order_of(const ProblemDraft& draft, const Rows<OpId, OpId>& predecessors,
                           const Rows<OpId, OpId>& successors) {
  const std::size_t count = draft.ops.size();
  Table<OpId, std::size_t> missing(count, 0);
  std::vector<OpId> order;
  order.reserve(count);
  for (const OpId op : missing.keys()) {
    missing[op] = predecessors[op].size();
    if (missing[op] == 0) order.push_back(op);
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const OpId successor : successors[order[next]]) {
      if (--missing[successor] == 0) order.push_back(successor);
    }
  }
  if (order.size() < count) {
    reject(DraftPart::problem, 0,
           fmt::format("the graph has a cycle: {}", describe_cycle(draft, predecessors, missing)));
  }
  return order;
}

void check_rules(const ProblemDraft& draft) {
  const Rules& rules = draft.rules;
  if (rules.calls_per_device < 1) {
    reject(DraftPart::problem, 0,
           fmt::format("calls per device is {}, expected at least 1", rules.calls_per_device));
  }
  if (rules.max_replicas < 1) {
    reject(DraftPart::problem, 0,
           fmt::format("the number of replicas is {}, expected at least 1", rules.max_replicas));
  }
  if (rules.micro_batches < 0) {
    reject(
        DraftPart::problem, 0,
        fmt::format("the number of micro-batches is {}, expected at least 0", rules.micro_batches));
  }
  if (rules.schedule == PipelineSchedule::gpipe && rules.micro_batches == 0) {
    reject(DraftPart::problem, 0, "the schedule 'gpipe' needs the number of micro-batches");
  }
  NumberCheck{DraftPart::problem, 0, "problem", draft.name}.finite("replica bandwidth",
                                                                   rules.replica_bandwidth);
}

void check_op(const ProblemDraft& draft, std::size_t i) {
  const Op& op = draft.ops[i];
  const NumberCheck check{DraftPart::op, i, "op", op.name};
  check.finite("memory", op.memory);
  if (op.model.index() >= draft.models.size()) {
    reject(DraftPart::op, i, fmt::format("op '{}' belongs to no model", op.name));
  }
  if (op.time.size() != draft.cluster.kinds.size()) {
    reject(DraftPart::op, i,
           fmt::format("op '{}' has {} times for {} device kinds", op.name, op.time.size(),
                       draft.cluster.kinds.size()));
  }
  for (const double time : op.time) check.finite_or_infinite("time", time);
  if (!op.share.empty() && op.share.size() != draft.cluster.kinds.size()) {
    reject(DraftPart::op, i,
           fmt::format("op '{}' has {} shares for {} device kinds", op.name, op.share.size(),
                       draft.cluster.kinds.size()));
  }
  for (const double share : op.share) {
    if (share > 0 && share <= 1) continue;
    reject(DraftPart::op, i,
           fmt::format("share of op '{}' is {}, expected a number above 0 and at most 1", op.name,
                       share));
  }
  if (op.pinned_to.valid() && op.pinned_to.index() >= draft.cluster.devices.size()) {
    reject(DraftPart::op, i, fmt::format("op '{}' is pinned to no device", op.name));
  }
}

void check_shared_weights(const ProblemDraft& draft) {
  for (std::size_t i = 0; i < draft.shared_weights.size(); ++i) {
    const SharedWeight& weight = draft.shared_weights[i];
    NumberCheck{DraftPart::shared_weight, i, "weight", weight.name}.finite("size", weight.bytes);
    for (const OpId op : weight.ops) {
      if (op.index() >= draft.ops.size()) {
        reject(DraftPart::shared_weight, i,
               fmt::format("weight '{}' is read by an op that does not exist", weight.name));
      }
    }
  }
}

// A tensor's own times have a row and a column for each device, and zeros where they meet.
void check_transfer_table(const ProblemDraft& draft, TensorId id, const NumberCheck& check) {
  const Tensor& tensor = draft.tensors[id.index()];
  const std::vector<Device>& devices = draft.cluster.devices;
  const std::string& producer = draft.ops[tensor.producer.index()].name;
  if (tensor.link_times.size() != devices.size() * devices.size()) {
    reject(DraftPart::tensor, id.index(),
           fmt::format(
               "the transfer table of the tensor from op '{}' has {} entries, expected {} x {}",
               producer, tensor.link_times.size(), devices.size(), devices.size()));
  }
  for (const double time : tensor.link_times) check.finite_or_infinite("transfer time", time);
  for (std::size_t device = 0; device < devices.size(); ++device) {
    const double time = tensor.link_times[device * devices.size() + device];
    if (time == 0) continue;
    reject(DraftPart::tensor, id.index(),
           fmt::format("the tensor from op '{}' takes {} from device '{}' to itself, expected 0",
                       producer, time, devices[device].name));
  }
}

void check_spaces(const Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.spaces.size(); ++i) {
    NumberCheck{DraftPart::space, i, "memory space", cluster.spaces[i].name}.finite_or_infinite(
        "memory", cluster.spaces[i].memory);
  }
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    const Device& record = cluster.devices[i];
    if (!record.space.valid()) continue;
    if (record.space.index() >= cluster.spaces.size()) {
      reject(DraftPart::device, i,
             fmt::format("device '{}' is in a memory space that does not exist", record.name));
    }
    if (record.memory < kInfinity) {
      reject(DraftPart::device, i,
             fmt::format("device '{}' states memory of its own and is in memory space '{}', which "
                         "states it",
                         record.name, cluster.spaces[record.space.index()].name));
    }
  }
}

// Leaves out the records that no id refers to, and numbers the others anew.
template <typename Id, typename Record>
void keep_used(std::vector<Record>& records, const std::vector<Id*>& uses) {
  Table<Id, char> used(records.size(), 0);
  for (const Id* id : uses) used[*id] = 1;
  Table<Id, Id> renumbered(records.size());
  std::vector<Record> kept;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (used[Id{i}] == 0) continue;
    renumbered[Id{i}] = Id{kept.size()};
    kept.push_back(std::move(records[i]));
  }
  for (Id* id : uses) *id = renumbered[*id];
  records = std::move(kept);
}

// Resources and memory spaces of no device play no part, and the others can be counted: several
// planners know one memory space for all devices.
void drop_unused_parts(Cluster& cluster) {
  std::vector<ResourceId*> resources;
  std::vector<SpaceId*> spaces;
  for (Device& device : cluster.devices) {
    for (ResourceUse& use : device.uses) resources.push_back(&use.resource);
    if (device.space.valid()) spaces.push_back(&device.space);
  }
  keep_used(cluster.resources, resources);
  keep_used(cluster.spaces, spaces);
}

}  // namespace

Problem::Problem(ProblemDraft draft) : draft_(std::move(draft)) {
  check_names_and_numbers();
  check_cluster();
  check_resources();
  check_spaces(draft_.cluster);
  drop_unused_parts(draft_.cluster);
  build_spaces();
  build_graph();
  build_groups();
  build_costs();
  build_cuts();
  check_links_of_spaces();
  check_support();
  features_ = features_asked();
}

std::optional<OpId> Problem::find_op(std::string_view name) const {
  const auto found = op_by_name_.find(name);
  if (found == op_by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<DeviceId> Problem::find_device(std::string_view name) const {
  for (const DeviceId device : devices()) {
    if (draft_.cluster.devices[device.index()].name == name) return device;
  }
  return std::nullopt;
}

bool Problem::group_allowed(GroupId group, DeviceId device) const {
  const auto members = group_ops(group);
  return std::all_of(members.begin(), members.end(), [&](OpId op) { return allowed(op, device); });
}

void Problem::check_names_and_numbers() const {
  if (draft_.ops.empty()) reject(DraftPart::problem, 0, "the problem has no ops");
  if (draft_.cluster.devices.empty()) reject(DraftPart::problem, 0, "the problem has no devices");
  if (draft_.models.empty()) reject(DraftPart::problem, 0, "the problem has no models");
  check_unique_names(draft_.cluster.kinds, DraftPart::kind, "kind");
  check_unique_names(draft_.cluster.resources, DraftPart::resource, "resource");
  check_unique_names(draft_.cluster.spaces, DraftPart::space, "memory space");
  check_unique_names(draft_.cluster.devices, DraftPart::device, "device");
  check_unique_names(draft_.models, DraftPart::model, "model");
  check_unique_names(draft_.ops, DraftPart::op, "op");

  check_rules(draft_);
  for (std::size_t i = 0; i < draft_.models.size(); ++i) {
    const Model& model = draft_.models[i];
    const NumberCheck check{DraftPart::model, i, "model", model.name};
    check.finite("arrival", model.arrival);
    check.finite("weight", model.weight);
    if (model.deadline) check.finite("deadline", *model.deadline);
  }
  for (std::size_t i = 0; i < draft_.ops.size(); ++i) check_op(draft_, i);
  check_shared_weights(draft_);
}

void Problem::check_cluster() const {
  std::size_t host_devices = 0;
  for (std::size_t i = 0; i < draft_.cluster.devices.size(); ++i) {
    const Device& device = draft_.cluster.devices[i];
    if (device.kind.index() >= draft_.cluster.kinds.size()) {
      reject(DraftPart::device, i, fmt::format("device '{}' has no kind", device.name));
    }
    const NumberCheck check{DraftPart::device, i, "device", device.name};
    check.finite_or_infinite("memory", device.memory);
    check.finite("send overhead", device.send_overhead);
    check.finite("receive overhead", device.receive_overhead);
    check.finite("price", device.price);
    if (device.lanes < 1) {
      reject(
          DraftPart::device, i,
          fmt::format("device '{}' has {} lanes, expected at least 1", device.name, device.lanes));
    }
    if (draft_.cluster.kinds[device.kind.index()].on_host) ++host_devices;
  }
  for (std::size_t i = 0; i < draft_.cluster.links.size(); ++i) {
    const Link& link = draft_.cluster.links[i];
    if (link.from.index() >= draft_.cluster.devices.size() ||
        link.to.index() >= draft_.cluster.devices.size()) {
      reject(DraftPart::link, i, "a link joins devices that do not exist");
    }
    const NumberCheck check{DraftPart::link, i, "the link to",
                            draft_.cluster.devices[link.to.index()].name};
    check.finite("latency", link.latency);
    check.finite_or_infinite("bandwidth", link.bandwidth);
    if (link.bandwidth == 0) {
      reject(DraftPart::link, i, "the bandwidth of a link is 0; leave the link out instead");
    }
  }
  if (!record_of(draft_.objective).one_host) return;
  if (draft_.cluster.interconnect != InterconnectKind::host) {
    reject(DraftPart::problem, 0,
           fmt::format("the objective {} is defined for a host interconnect only, and this problem "
                       "has links",
                       name_of(draft_.objective)));
  }
  if (host_devices > 1) {
    reject(DraftPart::problem, 0,
           fmt::format("the objective {} takes one host device, this problem has {}",
                       name_of(draft_.objective), host_devices));
  }
}

void Problem::check_resources() const {
  const Cluster& cluster = draft_.cluster;
  for (std::size_t i = 0; i < cluster.resources.size(); ++i) {
    const Resource& resource = cluster.resources[i];
    if (std::isfinite(resource.capacity) && resource.capacity > 0) continue;
    reject(DraftPart::resource, i,
           fmt::format("capacity of resource '{}' is {}, expected a finite number above 0",
                       resource.name, resource.capacity));
  }
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    const Device& device = cluster.devices[i];
    Table<ResourceId, char> used(cluster.resources.size(), 0);
    for (const ResourceUse& use : device.uses) {
      if (use.resource.index() >= cluster.resources.size()) {
        reject(DraftPart::device, i,
               fmt::format("device '{}' uses a resource that does not exist", device.name));
      }
      const Resource& resource = cluster.resources[use.resource.index()];
      if (used[use.resource]++ != 0) {
        reject(DraftPart::device, i,
               fmt::format("device '{}' lists resource '{}' twice", device.name, resource.name));
      }
      if (use.amount > 0 && use.amount <= resource.capacity) continue;
      reject(DraftPart::device, i,
             fmt::format("device '{}' takes {} of resource '{}', expected a number above 0 and at "
                         "most its capacity, {}",
                         device.name, use.amount, resource.name, resource.capacity));
    }
    if (!device.uses.empty() && device.lanes != 1) {
      reject(DraftPart::device, i,
             fmt::format("device '{}' uses resources and has {} lanes, expected 1", device.name,
                         device.lanes));
    }
  }
}

void Problem::build_spaces() {
  const Cluster& cluster = draft_.cluster;
  for (const Space& space : cluster.spaces) {
    space_memory_.push_back(space.memory);
    space_device_.push_back(DeviceId{});
  }
  for (const DeviceId id : devices()) {
    const Device& record = device(id);
    if (!record.space.valid()) {
      space_.push_back(SpaceId{space_memory_.size()});
      space_memory_.push_back(record.memory);
      space_device_.push_back(id);
      continue;
    }
    space_.push_back(record.space);
    DeviceId& first = space_device_[record.space];
    has_shared_spaces_ |= first.valid();
    if (!first.valid()) first = id;
    const auto on_host = [&](DeviceId each) {
      return cluster.kinds[kind_of(each).index()].on_host;
    };
    if (on_host(first) != on_host(id)) {
      reject(DraftPart::device, id.index(),
             fmt::format("devices '{}' and '{}' share a memory space and are not both host devices",
                         device(first).name, record.name));
    }
  }
}

const std::string& Problem::space_name(SpaceId space) const {
  return space.index() < draft_.cluster.spaces.size() ? draft_.cluster.spaces[space.index()].name
                                                      : device(space_device_[space]).name;
}

void Problem::build_graph() {
  op_by_name_.reserve(op_count());
  for (const OpId id : ops()) op_by_name_.emplace(op(id).name, id);

  std::vector<std::pair<OpId, TensorId>> input_pairs;
  std::vector<std::pair<OpId, TensorId>> output_pairs;
  std::vector<std::pair<OpId, OpId>> edges;
  producers_.assign(tensor_count(), OpId{});
  Table<OpId, TensorId> last_read(op_count());  // finds a consumer listed twice
  for (const TensorId id : tensors()) {
    const Tensor& tensor = draft_.tensors[id.index()];
    const auto called = [&] {
      return tensor.name.empty() ? fmt::format("tensor {}", id.index())
                                 : fmt::format("tensor '{}'", tensor.name);
    };
    if (tensor.producer.index() >= op_count()) {
      reject(DraftPart::tensor, id.index(), fmt::format("{} has no producer", called()));
    }
    producers_[id] = tensor.producer;
    output_pairs.emplace_back(tensor.producer, id);
    for (const OpId consumer : tensor.consumers) {
      if (consumer.index() >= op_count()) {
        reject(DraftPart::tensor, id.index(),
               fmt::format("{} is read by an op that does not exist", called()));
      }
      if (last_read[consumer] == id) {
        reject(DraftPart::tensor, id.index(),
               fmt::format("{} lists the reader '{}' twice", called(), op(consumer).name));
      }
      if (op(consumer).model != op(tensor.producer).model) {
        reject(DraftPart::tensor, id.index(),
               fmt::format("{} goes from op '{}' to op '{}' of another model", called(),
                           op(tensor.producer).name, op(consumer).name));
      }
      last_read[consumer] = id;
      input_pairs.emplace_back(consumer, id);
      edges.emplace_back(tensor.producer, consumer);
    }
    consumers_.append(tensor.consumers);
  }
  inputs_ = Rows<OpId, TensorId>::from_pairs(op_count(), input_pairs);
  outputs_ = Rows<OpId, TensorId>::from_pairs(op_count(), output_pairs);

  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  successors_ = Rows<OpId, OpId>::from_pairs(op_count(), edges);
  for (auto& [from, to] : edges) std::swap(from, to);
  predecessors_ = Rows<OpId, OpId>::from_pairs(op_count(), edges);

  topological_order_ = order_of(draft_, predecessors_, successors_);
  topological_rank_.assign(op_count(), 0);
  for (std::size_t rank = 0; rank < topological_order_.size(); ++rank) {
    topological_rank_[topological_order_[rank]] = rank;
  }
  has_backward_ops_ = std::any_of(draft_.ops.begin(), draft_.ops.end(),
                                  [](const Op& candidate) { return candidate.backward; });
}

void Problem::build_groups() {
  // Union-find over the colocation lists; a group is numbered by its first op.
  std::vector<std::size_t> parent(op_count());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto find = [&](std::size_t node) {
    while (parent[node] != node) node = parent[node] = parent[parent[node]];
    return node;
  };
  for (std::size_t i = 0; i < draft_.colocated.size(); ++i) {
    const auto& members = draft_.colocated[i];
    for (const OpId member : members) {
      if (member.index() >= op_count()) {
        reject(DraftPart::colocation, i, "a colocation group names an op that does not exist");
      }
      const std::size_t a = find(members.front().index());
      const std::size_t b = find(member.index());
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  groups_.assign(op_count(), GroupId{});
  std::size_t count = 0;
  for (const OpId id : ops()) {
    const OpId root{find(id.index())};
    groups_[id] = root == id ? GroupId{count++} : groups_[root];
  }
  std::vector<std::pair<GroupId, OpId>> members;
  members.reserve(op_count());
  for (const OpId id : ops()) members.emplace_back(groups_[id], id);
  group_ops_ = Rows<GroupId, OpId>::from_pairs(count, members);

  pins_.assign(op_count(), DeviceId{});
  for (const GroupId group : groups()) {
    OpId pinned;
    for (const OpId member : group_ops(group)) {
      if (!op(member).pinned_to.valid()) continue;
      if (pinned.valid() && op(pinned).pinned_to != op(member).pinned_to) {
        reject(DraftPart::op, member.index(),
               fmt::format("ops '{}' and '{}' must share a device but are pinned to '{}' and '{}'",
                           op(pinned).name, op(member).name, device(op(pinned).pinned_to).name,
                           device(op(member).pinned_to).name));
      }
      pinned = member;
    }
    if (!pinned.valid()) continue;
    for (const OpId member : group_ops(group)) pins_[member] = op(pinned).pinned_to;
  }

  std::vector<std::pair<OpId, WeightId>> reads;
  for (const WeightId id : ids<WeightId>(draft_.shared_weights.size())) {
    std::vector<OpId> readers = draft_.shared_weights[id.index()].ops;
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const OpId reader : readers) reads.emplace_back(reader, id);
  }
  op_weights_ = Rows<OpId, WeightId>::from_pairs(op_count(), reads);
}

void Problem::build_costs() {
  const std::size_t device_total = device_count();
  kind_index_.assign(device_total, 0);
  on_host_.assign(device_total, 0);
  for (const DeviceId id : devices()) {
    kind_index_[id] = device(id).kind.index();
    on_host_[id] = draft_.cluster.kinds[kind_index_[id]].on_host ? 1 : 0;
  }
  times_.reserve(op_count() * kind_count());
  memory_.assign(op_count(), 0);
  bool any_share = false;
  for (const OpId id : ops()) {
    times_.insert(times_.end(), op(id).time.begin(), op(id).time.end());
    memory_[id] = op(id).memory;
    any_share = any_share || !op(id).share.empty();
  }
  if (any_share) {
    shares_.assign(op_count() * kind_count(), 1);
    for (const OpId id : ops()) {
      std::ranges::copy(op(id).share,
                        shares_.begin() + static_cast<std::ptrdiff_t>(id.index() * kind_count()));
    }
  }

  bytes_.assign(tensor_count(), 0);
  host_times_.assign(tensor_count(), 0);
  link_tables_.assign(tensor_count(), nullptr);
  for (const TensorId id : tensors()) {
    const Tensor& tensor = draft_.tensors[id.index()];
    const NumberCheck check{DraftPart::tensor, id.index(), "tensor from op",
                            op(tensor.producer).name};
    check.finite("size", tensor.bytes);
    check.finite("transfer time", tensor.host_time);
    bytes_[id] = tensor.bytes;
    host_times_[id] = tensor.host_time;
    if (tensor.link_times.empty()) continue;
    check_transfer_table(draft_, id, check);
    link_tables_[id] = tensor.link_times.data();
  }

  link_latency_.assign(device_total * device_total, kInfinity);
  link_inverse_bandwidth_.assign(device_total * device_total, 0);
  for (const DeviceId id : devices()) link_latency_[id.index() * device_total + id.index()] = 0;
  for (const Link& link : draft_.cluster.links) {
    if (link.from == link.to) continue;
    const std::size_t pair = link.from.index() * device_total + link.to.index();
    link_latency_[pair] = link.latency;
    link_inverse_bandwidth_[pair] = 1.0 / link.bandwidth;
  }
  if (!has_shared_spaces()) return;
  for (const DeviceId from : devices()) {
    for (const DeviceId to : devices()) {
      if (!same_space(from, to)) continue;
      const std::size_t pair = from.index() * device_total + to.index();
      link_latency_[pair] = link_inverse_bandwidth_[pair] = 0;
    }
  }
}

void Problem::build_cuts() {
  for (const DeviceId id : devices()) {
    has_overheads_ |= device(id).send_overhead > 0 || device(id).receive_overhead > 0;
  }
  for (const TensorId id : tensors()) {
    const Tensor& record = tensor(id);
    const NumberCheck check{DraftPart::tensor, id.index(), "tensor from op",
                            op(record.producer).name};
    Table<KindId, char> listed(record.cuts.empty() ? 0 : kind_count(), 0);
    for (const CutOverhead& cut : record.cuts) {
      check.finite("send overhead", cut.send);
      check.finite("receive overhead", cut.receive);
      if (cut.kind.index() >= kind_count() || listed[cut.kind]++ != 0) {
        reject(
            DraftPart::tensor, id.index(),
            fmt::format("the cuts of the tensor from op '{}' name a kind twice, or one that does "
                        "not exist",
                        op(record.producer).name));
      }
      has_tensor_cuts_ = true;
      has_overheads_ |= cut.send > 0 || cut.receive > 0;
    }
  }
}

const CutOverhead* Problem::cut_of(TensorId id, DeviceId device) const {
  if (!has_tensor_cuts_) return nullptr;
  const auto& cuts = tensor(id).cuts;
  const auto found = std::ranges::find(cuts, kind_of(device), &CutOverhead::kind);
  return found == cuts.end() ? nullptr : &*found;
}

// Whoever sends from one space to another takes the same time, whichever devices it has there.
void Problem::check_links_of_spaces() const {
  if (!has_shared_spaces() || interconnect() != InterconnectKind::links) return;
  for (const DeviceId from : devices()) {
    for (const DeviceId to : devices()) {
      const DeviceId first_from = space_device_[space(from)];
      const DeviceId first_to = space_device_[space(to)];
      const std::size_t pair = from.index() * device_count() + to.index();
      const std::size_t first = first_from.index() * device_count() + first_to.index();
      if (link_latency_[pair] != link_latency_[first] ||
          link_inverse_bandwidth_[pair] != link_inverse_bandwidth_[first]) {
        reject(DraftPart::device, to.index(),
               fmt::format("the link from device '{}' to '{}' differs from that from '{}' to '{}', "
                           "in the same memory spaces",
                           device(from).name, device(to).name, device(first_from).name,
                           device(first_to).name));
      }
      for (const TensorId id : tensors()) {
        const double* table = link_tables_[id];
        if (table == nullptr) continue;
        const double expected = same_space(from, to) ? 0 : table[first];
        if (table[pair] == expected) continue;
        reject(DraftPart::tensor, id.index(),
               fmt::format("the tensor from op '{}' takes {} from device '{}' to '{}', expected {} "
                           "as their memory spaces have it",
                           op(producer(id)).name, table[pair], device(from).name, device(to).name,
                           expected));
      }
    }
  }
}

Features Problem::features_asked() const {
  const Rules& rules = draft_.rules;
  const bool stages = record_of(objective()).form == PlanForm::stages;
  Features asked;
  asked.add_if(has_sharing(), Feature::sharing)
      .add_if(space_count() > 1, Feature::several_spaces)
      .add_if(std::ranges::any_of(draft_.cluster.devices, [](auto& d) { return d.lanes > 1; }),
              Feature::lanes)
      .add_if(rules.memory == MemoryModel::peak, Feature::peak_memory)
      .add_if(stages && rules.contiguity == Contiguity::none, Feature::free_sets)
      .add_if(stages && rules.contiguity == Contiguity::joint, Feature::joint_sets)
      .add_if(stages && rules.contiguity == Contiguity::per_device, Feature::convex_sets)
      .add_if(stages && rules.transfers == TransferMode::duplex, Feature::duplex)
      .add_if(stages && rules.max_replicas > 1, Feature::replicas)
      .add_if(has_backward_ops(), Feature::training)
      .add_if(has_backward_ops() && rules.training == TrainingMode::phased,
              Feature::phased_training)
      .add_if(has_overheads(), Feature::cut_overheads)
      .add_if(std::ranges::any_of(link_tables_, [](auto* table) { return table != nullptr; }),
              Feature::transfer_tables)
      .add_if(std::ranges::any_of(pins_, &DeviceId::valid), Feature::pins)
      .add_if(group_count() < op_count(), Feature::colocation)
      .add_if(shared_weight_count() > 0, Feature::shared_weights)
      .add_if(model_count() > 1, Feature::several_models);
  return asked;
}

void Problem::check_support() const {
  for (const OpId id : ops()) {
    const auto all = devices();
    const bool placeable =
        std::any_of(all.begin(), all.end(), [&](DeviceId device) { return allowed(id, device); });
    if (placeable) continue;
    const DeviceId pin = pins_[id];
    reject(DraftPart::op, id.index(),
           pin.valid() ? fmt::format("op '{}' is pinned to device '{}', which does not support it",
                                     op(id).name, device(pin).name)
                       : fmt::format("op '{}' is supported by no device", op(id).name));
  }
}

}  // namespace placewright
