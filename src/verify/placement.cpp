#include "verify/placement.h"

#include <algorithm>
#include <set>

namespace placewright::verifying {
namespace {

bool check_complete(const Problem& problem, const Placement& placement, Findings& findings) {
  if (placement.size() != problem.op_count()) {
    findings.add(ViolationCode::placement_incomplete, {}, {},
                 "the placement has {} entries for {} ops", placement.size(), problem.op_count());
    return false;
  }
  bool complete = true;
  for (const OpId op : problem.ops()) {
    if (placement[op].index() < problem.device_count()) continue;
    findings.add(ViolationCode::placement_incomplete, {op}, {}, "{} is placed on no device",
                 called(problem, op));
    complete = false;
  }
  return complete;
}

bool check_support(const Problem& problem, const Placement& placement, Findings& findings) {
  bool supported = true;
  for (const OpId op : problem.ops()) {
    const DeviceId device = placement[op];
    if (problem.time(op, device) < kUnsupported) continue;
    findings.add(ViolationCode::unsupported_device, {op}, {device},
                 "{} is placed on {}, which cannot run it", called(problem, op),
                 called(problem, device));
    supported = false;
  }
  return supported;
}

void check_pins(const Problem& problem, const Placement& placement, Findings& findings) {
  for (const OpId op : problem.ops()) {
    const DeviceId pin = problem.op(op).pinned_to;
    if (!pin.valid() || pin == placement[op]) continue;
    findings.add(ViolationCode::pin_broken, {op}, {pin, placement[op]},
                 "{} is pinned to {} and placed on {}", called(problem, op), called(problem, pin),
                 called(problem, placement[op]));
  }
}

void check_colocation(const Problem& problem, const Placement& placement, Findings& findings) {
  for (const std::vector<OpId>& members : problem.draft().colocated) {
    for (const OpId member : members) {
      const OpId first = members.front();
      if (placement[member] == placement[first]) continue;
      findings.add(ViolationCode::colocation_broken, {first, member},
                   {placement[first], placement[member]},
                   "{} and {} must share a device and are placed on {} and {}",
                   called(problem, first), called(problem, member),
                   called(problem, placement[first]), called(problem, placement[member]));
    }
  }
}

bool check_links(const Problem& problem, const Placement& placement, Findings& findings) {
  bool linked = true;
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId from = placement[producer];
      const DeviceId to = placement[consumer];
      if (problem.same_space(from, to) || problem.reachable(tensor, from, to)) continue;
      findings.add(ViolationCode::no_link, {producer, consumer}, {from, to},
                   "{} is produced on {} and read by {} on {}, and there is no link",
                   called(problem, tensor), called(problem, from), called(problem, consumer),
                   called(problem, to));
      linked = false;
    }
  }
  return linked;
}

}  // namespace

bool check_placement(const Problem& problem, const Placement& placement, Findings& findings) {
  if (!check_complete(problem, placement, findings)) return false;
  const bool supported = check_support(problem, placement, findings);
  const bool linked = check_links(problem, placement, findings);
  check_pins(problem, placement, findings);
  check_colocation(problem, placement, findings);
  return supported && linked;
}

double resident_bytes(const Problem& problem, std::span<const OpId> ops) {
  double bytes = 0;
  std::set<WeightId> counted;
  for (const OpId op : ops) {
    bytes += problem.op(op).memory;
    for (const WeightId weight : problem.shared_weights(op)) {
      if (counted.insert(weight).second) bytes += problem.shared_weight_bytes(weight);
    }
  }
  return bytes;
}

bool fits(double bytes, double memory) {
  return bytes <= memory * (1 + kMemoryTolerance);
}

bool check_resident_memory(const Problem& problem, const ResidentSet& set, Findings& findings) {
  const double bytes = resident_bytes(problem, set.ops);
  const double memory = problem.space_memory(set.space);
  if (fits(bytes, memory)) return true;
  findings.add(ViolationCode::memory_exceeded, {set.ops.begin(), set.ops.end()},
               devices_by_space(problem)[set.space],
               "the weights of {} ops {} take {:.9g} bytes, it has {:.9g}", set.ops.size(),
               located(problem, set.space), bytes, memory);
  return false;
}

Table<DeviceId, std::vector<OpId>> ops_by_device(const Problem& problem,
                                                 const Placement& placement) {
  Table<DeviceId, std::vector<OpId>> ops(problem.device_count());
  for (const OpId op : problem.ops()) ops[placement[op]].push_back(op);
  return ops;
}

Table<SpaceId, std::vector<OpId>> ops_by_space(const Problem& problem, const Placement& placement) {
  Table<SpaceId, std::vector<OpId>> ops(problem.space_count());
  for (const OpId op : problem.ops()) ops[problem.space(placement[op])].push_back(op);
  return ops;
}

Table<SpaceId, std::vector<DeviceId>> devices_by_space(const Problem& problem) {
  Table<SpaceId, std::vector<DeviceId>> devices(problem.space_count());
  for (const DeviceId device : problem.devices()) {
    devices[problem.space(device)].push_back(device);
  }
  return devices;
}

}  // namespace placewright::verifying
