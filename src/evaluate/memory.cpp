#include "evaluate/memory.h"

#include <algorithm>

namespace placewright {

MemoryLedger::MemoryLedger(const Problem& problem)
    : problem_(&problem),
      used_(problem.space_count(), 0.0),
      ops_(problem.space_count(), 0),
      group_memory_(problem.group_count(), 0.0) {
  for (const OpId op : problem.ops()) group_memory_[problem.group(op)] += problem.memory(op);
  if (problem.shared_weight_count() == 0) return;

  readers_.assign(problem.shared_weight_count() * problem.space_count(), 0);
  std::vector<WeightId> weights;
  for (const GroupId group : problem.groups()) {
    weights.clear();
    for (const OpId op : problem.group_ops(group)) {
      const auto shared = problem.shared_weights(op);
      weights.insert(weights.end(), shared.begin(), shared.end());
    }
    std::sort(weights.begin(), weights.end());
    weights.erase(std::unique(weights.begin(), weights.end()), weights.end());
    group_weights_.append(weights);
  }
}

MemoryLedger::MemoryLedger(const Problem& problem, const Placement& placement)
    : MemoryLedger(problem) {
  for (const OpId op : problem.ops()) {
    if (placement[op].valid()) add(op, placement[op]);
  }
}

bool MemoryLedger::within() const {
  return std::ranges::all_of(used_.keys(), [this](SpaceId space) {
    return within_memory(used_[space], problem_->space_memory(space));
  });
}

double MemoryLedger::growth(OpId op, DeviceId device) const {
  double bytes = problem_->memory(op);
  for (const WeightId weight : problem_->shared_weights(op)) {
    if (!is_read(weight, problem_->space(device))) bytes += problem_->shared_weight_bytes(weight);
  }
  return bytes;
}

double MemoryLedger::growth(GroupId group, DeviceId device) const {
  double bytes = group_memory_[group];
  if (readers_.empty()) return bytes;
  for (const WeightId weight : group_weights_[group]) {
    if (!is_read(weight, problem_->space(device))) bytes += problem_->shared_weight_bytes(weight);
  }
  return bytes;
}

void MemoryLedger::add(OpId op, DeviceId device) {
  const SpaceId space = problem_->space(device);
  ++ops_[space];
  used_[space] += problem_->memory(op);
  for (const WeightId weight : problem_->shared_weights(op)) {
    if (readers(weight, space)++ == 0) used_[space] += problem_->shared_weight_bytes(weight);
  }
}

void MemoryLedger::remove(OpId op, DeviceId device) {
  const SpaceId space = problem_->space(device);
  used_[space] -= problem_->memory(op);
  for (const WeightId weight : problem_->shared_weights(op)) {
    if (--readers(weight, space) == 0) used_[space] -= problem_->shared_weight_bytes(weight);
  }
  // An empty space uses nothing, whatever rounding has left behind.
  if (--ops_[space] == 0) used_[space] = 0;
}

void MemoryLedger::add_group(GroupId group, DeviceId device) {
  for (const OpId op : problem_->group_ops(group)) add(op, device);
}

void MemoryLedger::remove_group(GroupId group, DeviceId device) {
  for (const OpId op : problem_->group_ops(group)) remove(op, device);
}

Table<DeviceId, double> resident_memory(const Problem& problem, const Placement& placement) {
  const MemoryLedger ledger(problem, placement);
  Table<DeviceId, double> resident(problem.device_count());
  for (const DeviceId device : problem.devices()) resident[device] = ledger.used(device);
  return resident;
}

bool memory_fits(const Problem& problem, const Placement& placement) {
  return MemoryLedger(problem, placement).within();
}

}  // namespace placewright
