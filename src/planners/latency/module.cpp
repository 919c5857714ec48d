#include "planners/latency/module.h"

#include <algorithm>
#include <map>

#include "evaluate/memory.h"
#include "problem/move_time.h"

namespace placewright {

Module::Module(const Problem& whole, const CutSegment& segment, bool memory_binds)
    : problem(&whole),
      devices(whole.device_count()),
      congestion(whole.rules().congestion),
      host(whole.interconnect() == InterconnectKind::host),
      with_memory(memory_binds),
      has_entry(segment.entry.valid()),
      exit(segment.exit.valid() ? static_cast<int>(segment.ops.size()) - 1 : -1) {
  for (const DeviceId device : whole.devices()) {
    on_host.push_back(host && whole.on_host(device));
    const auto most = static_cast<int>(segment.ops.size());
    lanes.push_back(std::min(whole.device(device).lanes, most));
    capacity.push_back(whole.device(device).memory * (1 + kMemoryTolerance));
  }
  add_ops(segment);
  add_tensors(segment);
  add_groups(segment);
}

void Module::add_ops(const CutSegment& segment) {
  ops = segment.ops;
  for (const OpId op : ops) {
    DeviceMask set = 0;
    for (const DeviceId device : problem->devices()) {
      times.push_back(problem->time(op, device));
      if (problem->group_allowed(problem->group(op), device))
        set |= DeviceMask{1} << device.index();
    }
    allowed.push_back(set);
    memory.push_back(problem->memory(op));
    release.push_back(has_entry ? 0 : problem->model(problem->op(op).model).arrival);
  }
}

void Module::add_tensors(const CutSegment& segment) {
  std::map<OpId, int> number;
  for (std::size_t i = 0; i < ops.size(); ++i) number[ops[i]] = static_cast<int>(i);
  inputs.resize(ops.size());
  outputs.resize(ops.size());
  predecessors.assign(ops.size(), 0);
  const auto add = [&](TensorId id, int producer) {
    TensorRecord record{.id = id, .producer = producer, .consumers = {}};
    for (const OpId consumer : problem->consumers(id)) {
      const auto found = number.find(consumer);
      if (found != number.end()) record.consumers.push_back(found->second);
    }
    if (record.consumers.empty()) return;
    const int index = static_cast<int>(tensors.size());
    record.single = record.consumers.size() == 1;
    record.slot = static_cast<int>(slot_count);
    slot_count += record.single ? 1 : devices;
    for (const int consumer : record.consumers) {
      inputs[static_cast<std::size_t>(consumer)].push_back(index);
      if (producer != kEntry) {
        predecessors[static_cast<std::size_t>(consumer)] |= std::uint64_t{1} << producer;
      }
    }
    (producer == kEntry ? entry_outputs : outputs[static_cast<std::size_t>(producer)])
        .push_back(index);
    host_times.push_back(problem->host_time(id));
    for (const DeviceId from : problem->devices()) {
      for (const DeviceId to : problem->devices()) {
        moves.push_back(move_time(*problem, id, from, to));
      }
    }
    tensors.push_back(std::move(record));
  };
  if (has_entry) {
    for (const TensorId id : problem->outputs(segment.entry)) add(id, kEntry);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const TensorId id : problem->outputs(ops[i])) add(id, static_cast<int>(i));
  }
}

void Module::add_groups(const CutSegment& segment) {
  std::map<GroupId, int> number;
  const auto number_of = [&](OpId op) {
    const GroupId id = problem->group(op);
    if (problem->group_ops(id).size() == 1) return -1;
    return number.try_emplace(id, static_cast<int>(number.size())).first->second;
  };
  if (has_entry) entry_group = number_of(segment.entry);
  for (const OpId op : ops) group.push_back(number_of(op));
  group_count = static_cast<int>(number.size());
}

std::string Module::signature() const {
  std::string bytes;
  const auto add = [&](const auto& values) {
    const std::size_t count = values.size();
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.append(reinterpret_cast<const char*>(values.data()), count * sizeof(*values.data()));
  };
  add(std::vector<int>{has_entry ? 1 : 0, exit, entry_group});
  for (const TensorRecord& tensor : tensors) {
    add(std::vector<int>{tensor.producer});
    add(tensor.consumers);
  }
  add(allowed);
  add(release);
  add(group);
  add(times);
  add(moves);
  add(host_times);
  return bytes;
}

}  // namespace placewright
