#include "support/plan_mutants.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace placewright::testing {
namespace {

using Code = ViolationCode;
using Found = std::optional<ViolationCode>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OpId any_op(Mutant& m) {
  return OpId{m.random.below(m.problem.op_count())};
}

std::optional<DeviceId> another_device(Mutant& m, DeviceId than) {
  std::vector<DeviceId> others;
  for (const DeviceId device : m.problem.devices()) {
    if (device != than) others.push_back(device);
  }
  return one_of(others, m.random);
}

Found unsupported(Mutant& m) {
  std::vector<std::pair<OpId, DeviceId>> pairs;
  for (const OpId op : m.problem.ops()) {
    for (const DeviceId device : m.problem.devices()) {
      if (m.problem.time(op, device) == kUnsupported) pairs.emplace_back(op, device);
    }
  }
  const auto pair = one_of(pairs, m.random);
  if (!pair) return {};
  m.plan.placement[pair->first] = pair->second;
  return Code::unsupported_device;
}

Found unpinned(Mutant& m) {
  for (const OpId op : m.problem.ops()) {
    const DeviceId pin = m.problem.op(op).pinned_to;
    if (!pin.valid()) continue;
    const auto other = another_device(m, pin);
    if (!other) return {};
    m.plan.placement[op] = *other;
    return Code::pin_broken;
  }
  return {};
}

Found apart(Mutant& m) {
  const auto group = one_of(m.draft.colocated, m.random);
  if (!group || group->size() < 2) return {};
  const auto other = another_device(m, m.plan.placement[group->front()]);
  if (!other) return {};
  m.plan.placement[group->back()] = *other;
  return Code::colocation_broken;
}

Found without_link(Mutant& m) {
  for (const TensorId tensor : m.problem.tensors()) {
    const DeviceId home = m.plan.placement[m.problem.producer(tensor)];
    for (const OpId reader : m.problem.consumers(tensor)) {
      for (const DeviceId device : m.problem.devices()) {
        if (m.problem.same_space(home, device) || m.problem.reachable(tensor, home, device)) {
          continue;
        }
        m.plan.placement[reader] = device;
        return Code::no_link;
      }
    }
  }
  return {};
}

void set_memory(Mutant& m, DeviceId device, double bytes) {
  Device& record = m.draft.cluster.devices[device.index()];
  if (record.space.valid()) {
    m.draft.cluster.spaces[record.space.index()].memory = bytes;
  } else {
    record.memory = bytes;
  }
}

// What the ops in the space of a device weigh.
double weight_at(const Mutant& m, DeviceId device) {
  double bytes = 0;
  std::set<WeightId> shared;
  for (const OpId op : m.problem.ops()) {
    if (!m.problem.same_space(m.plan.placement[op], device)) continue;
    bytes += m.problem.op(op).memory;
    for (const WeightId weight : m.problem.shared_weights(op)) shared.insert(weight);
  }
  for (const WeightId weight : shared) bytes += m.problem.shared_weight_bytes(weight);
  return bytes;
}

Found less_memory(Mutant& m) {
  const DeviceId device = m.plan.placement[any_op(m)];
  const double bytes = weight_at(m, device);
  if (bytes == 0) return {};
  set_memory(m, device, 0.9 * bytes);
  return Code::memory_exceeded;
}

// Room for the weights and not for a tensor that is there beside them.
Found less_than_the_peak(Mutant& m) {
  if (m.problem.objective() == Objective::call_latency ||
      m.problem.interconnect() == InterconnectKind::host || m.problem.tensor_count() == 0) {
    return {};
  }
  for (const Stage& stage : m.plan.stages) {
    if (stage.devices.size() > 1) return {};
  }
  const TensorId tensor{m.random.below(m.problem.tensor_count())};
  if (m.problem.tensor(tensor).bytes == 0) return {};
  const OpId producer = m.problem.producer(tensor);
  const DeviceId device = m.plan.placement[producer];
  // What takes no time is there at no moment.
  if (m.problem.time(producer, device) < m.horizon / 1000) return {};
  m.draft.rules.memory = MemoryModel::peak;
  set_memory(m, device, weight_at(m, device) + 0.9 * m.problem.tensor(tensor).bytes);
  return Code::peak_memory_exceeded;
}

// A pipeline on shared resources may choose any period that is long enough.
bool chooses_value(const Mutant& m) {
  return m.problem.objective() == Objective::throughput && m.problem.resource_count() > 0;
}

Found value_times(Mutant& m, double factor) {
  if (chooses_value(m)) return {};
  m.plan.value *= factor;
  return Code::value_wrong;
}

constexpr MutationOperator kAny[] = {
    {"an op without a device",
     [](Mutant& m) -> Found {
       m.plan.placement[any_op(m)] = DeviceId{};
       return Code::placement_incomplete;
     }},
    {"a device that does not exist",
     [](Mutant& m) -> Found {
       m.plan.placement[any_op(m)] = DeviceId{m.problem.device_count()};
       return Code::placement_incomplete;
     }},
    {"an op too many",
     [](Mutant& m) -> Found {
       m.plan.placement.push_back(DeviceId{0});
       return Code::placement_incomplete;
     }},
    {"a device that cannot run the op", unsupported},
    {"a pinned op elsewhere", unpinned},
    {"colocated ops apart", apart},
    {"a tensor without a way", without_link},
    {"less memory than weights", less_memory},
    {"less memory than weights and tensors", less_than_the_peak},
    {"a value a millionth above", [](Mutant& m) { return value_times(m, 1 + 1e-6); }},
    {"a value a millionth below", [](Mutant& m) { return value_times(m, 1 - 1e-6); }},
    {"half the value", [](Mutant& m) { return value_times(m, 0.5); }},
    {"a negative value",
     [](Mutant& m) -> Found {
       m.plan.value = -m.plan.value;
       return Code::value_wrong;
     }},
    {"a value that is no number",
     [](Mutant& m) -> Found {
       m.plan.value = kNan;
       return Code::value_wrong;
     }},
    {"an infinite value",
     [](Mutant& m) -> Found {
       m.plan.value = kInfinity;
       return Code::value_wrong;
     }},
    {"a bound above the value",
     [](Mutant& m) -> Found {
       m.statement = {.status = Status::feasible, .lower_bound = 1.001 * m.plan.value};
       return Code::bound_above_value;
     }},
    {"a gap that is not the gap",
     [](Mutant& m) -> Found {
       m.statement = {.status = Status::feasible, .lower_bound = m.plan.value / 2, .gap = 0.4};
       return Code::gap_wrong;
     }},
    {"optimal with a gap",
     [](Mutant& m) -> Found {
       m.statement = {.status = Status::optimal, .lower_bound = 0.999 * m.plan.value};
       return Code::status_wrong;
     }},
    {"feasible without a gap",
     [](Mutant& m) -> Found {
       m.statement = {.status = Status::feasible, .lower_bound = m.plan.value};
       return Code::status_wrong;
     }},
    {"infeasible with a plan",
     [](Mutant& m) -> Found {
       m.statement = {.status = Status::infeasible};
       return Code::status_wrong;
     }},
};

}  // namespace

std::span<const MutationOperator> operators_of_any_plan() {
  return kAny;
}

bool exceed_together(const Problem& problem, DeviceId first, double first_share, DeviceId second,
                     double second_share) {
  for (const ResourceUse& mine : problem.uses(first)) {
    for (const ResourceUse& other : problem.uses(second)) {
      if (mine.resource != other.resource) continue;
      const double both = first_share * mine.amount + second_share * other.amount;
      if (both > 1.001 * problem.resource(mine.resource).capacity) return true;
    }
  }
  return false;
}

bool possible(const Problem& problem, const Placement& placement) {
  for (const OpId op : problem.ops()) {
    if (problem.time(op, placement[op]) == kUnsupported) return false;
  }
  for (const TensorId tensor : problem.tensors()) {
    const DeviceId home = placement[problem.producer(tensor)];
    for (const OpId reader : problem.consumers(tensor)) {
      const DeviceId there = placement[reader];
      if (!problem.same_space(home, there) && !problem.reachable(tensor, home, there)) return false;
    }
  }
  return true;
}

}  // namespace placewright::testing
