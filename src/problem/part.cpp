#include "problem/part.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace placewright {
namespace {

// Those that have a number, by it.
std::vector<OpId> renumbered(std::span<const OpId> ops, const Table<OpId, OpId>& number) {
  std::vector<OpId> kept;
  for (const OpId op : ops) {
    if (number[op].valid()) kept.push_back(number[op]);
  }
  return kept;
}

// Rows and columns of the kept devices out of a table of link times.
std::vector<double> kept_entries(const std::vector<double>& table, std::size_t devices,
                                 std::span<const DeviceId> kept) {
  std::vector<double> entries;
  if (table.empty()) return entries;
  for (const DeviceId from : kept) {
    for (const DeviceId to : kept) entries.push_back(table[from.index() * devices + to.index()]);
  }
  return entries;
}

void move_pins(ProblemDraft& draft, const Table<DeviceId, DeviceId>& number) {
  for (Op& op : draft.ops) {
    if (!op.pinned_to.valid()) continue;
    const DeviceId device = number[op.pinned_to];
    if (!device.valid()) {
      throw std::invalid_argument(
          fmt::format("op '{}' is pinned to device '{}', which is not among them", op.name,
                      draft.cluster.devices[op.pinned_to.index()].name));
    }
    op.pinned_to = device;
  }
}

}  // namespace

ProblemDraft frame_of(const Problem& problem) {
  const ProblemDraft& draft = problem.draft();
  ProblemDraft frame;
  frame.name = draft.name;
  frame.unit = draft.unit;
  frame.objective = draft.objective;
  frame.rules = draft.rules;
  frame.cluster = draft.cluster;
  frame.models = draft.models;
  return frame;
}

ProblemDraft part_of(const Problem& problem, std::span<const OpId> ops) {
  const ProblemDraft& whole = problem.draft();
  ProblemDraft part = frame_of(problem);
  Table<OpId, OpId> number(problem.op_count());
  for (const OpId op : ops) {
    number[op] = OpId{part.ops.size()};
    part.ops.push_back(problem.op(op));
  }
  for (const OpId op : ops) {
    for (const TensorId output : problem.outputs(op)) {
      std::vector<OpId> readers = renumbered(problem.consumers(output), number);
      if (readers.empty()) continue;
      Tensor& tensor = part.tensors.emplace_back(problem.tensor(output));
      tensor.producer = number[op];
      tensor.consumers = std::move(readers);
    }
  }
  for (const std::vector<OpId>& group : whole.colocated) {
    std::vector<OpId> together = renumbered(group, number);
    if (together.size() > 1) part.colocated.push_back(std::move(together));
  }
  for (const SharedWeight& weight : whole.shared_weights) {
    std::vector<OpId> readers = renumbered(weight.ops, number);
    if (!readers.empty()) {
      part.shared_weights.push_back({weight.name, weight.bytes, std::move(readers)});
    }
  }
  return part;
}

void keep_devices(ProblemDraft& draft, std::span<const DeviceId> kept) {
  Cluster& cluster = draft.cluster;
  Table<DeviceId, DeviceId> number(cluster.devices.size());
  for (std::size_t i = 0; i < kept.size(); ++i) number[kept[i]] = DeviceId{i};
  move_pins(draft, number);
  std::erase_if(cluster.links, [&](const Link& link) {
    return !number[link.from].valid() || !number[link.to].valid();
  });
  for (Link& link : cluster.links) {
    link.from = number[link.from];
    link.to = number[link.to];
  }
  for (Tensor& tensor : draft.tensors) {
    tensor.link_times = kept_entries(tensor.link_times, number.size(), kept);
  }
  std::vector<Device> devices;
  for (const DeviceId device : kept) devices.push_back(std::move(cluster.devices[device.index()]));
  cluster.devices = std::move(devices);
}

}  // namespace placewright
