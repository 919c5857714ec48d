#include "planning/feasibility.h"

#include <algorithm>

#include <fmt/format.h>

#include "evaluate/memory.h"
#include "planning/sizes.h"
#include "problem/memory_spaces.h"

namespace placewright {
namespace {

// "op 'a'", "ops 'a' and 'b'", "ops 'a', 'b' and 5 more"
std::string group_text(const Problem& problem, GroupId group) {
  const auto ops = problem.group_ops(group);
  const std::string& first = problem.op(ops[0]).name;
  if (ops.size() == 1) return fmt::format("op '{}'", first);
  const std::string& second = problem.op(ops[1]).name;
  if (ops.size() == 2)
    return fmt::format("ops '{}' and '{}', which share a device,", first, second);
  return fmt::format("ops '{}', '{}' and {} more, which share a device,", first, second,
                     ops.size() - 2);
}

// `empty`: a ledger without ops.
std::optional<std::string> proof_from_group(const Problem& problem, const MemoryLedger& empty,
                                            GroupId group) {
  const auto memory_of = [&](DeviceId device) {
    return problem.space_memory(problem.space(device));
  };
  std::optional<DeviceId> largest;
  for (const DeviceId device : problem.devices()) {
    if (!problem.group_allowed(group, device)) continue;
    if (!largest || memory_of(device) > memory_of(*largest)) largest = device;
  }
  if (!largest) {
    return fmt::format("{} can run on no single device", group_text(problem, group));
  }
  const double bytes = empty.growth(group, DeviceId{0});  // the same on every device
  if (within_memory(bytes, memory_of(*largest))) return std::nullopt;
  const bool one = problem.group_ops(group).size() == 1;
  return fmt::format("{} {} {} of memory, and the largest for {}, {}, has {}",
                     group_text(problem, group), one ? "needs" : "need", size_text(bytes),
                     one ? "it" : "them", space_text(problem, *largest),
                     size_text(memory_of(*largest)));
}

}  // namespace

double memory_needed(const Problem& problem) {
  double bytes = 0;
  for (const OpId op : problem.ops()) bytes += problem.memory(op);
  for (const WeightId weight : ids<WeightId>(problem.shared_weight_count())) {
    bytes += problem.shared_weight_bytes(weight);
  }
  return bytes;
}

double memory_available(const Problem& problem) {
  double bytes = 0;
  for (const DeviceId device : first_devices_of_spaces(problem)) {
    bytes += problem.space_memory(problem.space(device));
  }
  return bytes;
}

std::optional<std::string> proof_of_infeasibility(const Problem& problem) {
  const MemoryLedger empty(problem);
  for (const GroupId group : problem.groups()) {
    if (auto proof = proof_from_group(problem, empty, group)) return proof;
  }
  const double needed = memory_needed(problem);
  const double available = memory_available(problem);
  if (within_memory(needed, available)) return std::nullopt;
  return fmt::format("the ops need {} of memory, and the devices have {} together",
                     size_text(needed), size_text(available));
}

}  // namespace placewright
