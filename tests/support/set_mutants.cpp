#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "support/plan_mutants.h"

namespace placewright::testing {
namespace {

using Code = ViolationCode;
using Found = std::optional<ViolationCode>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Pipelines

Stage& any_stage(Mutant& m) {
  return m.plan.stages[m.random.below(m.plan.stages.size())];
}

std::vector<DeviceId> idle_devices(const Mutant& m) {
  std::set<DeviceId> busy;
  for (const Stage& stage : m.plan.stages) busy.insert(stage.devices.begin(), stage.devices.end());
  std::vector<DeviceId> idle;
  for (const DeviceId device : m.problem.devices()) {
    if (!busy.contains(device)) idle.push_back(device);
  }
  return idle;
}

Found too_many_replicas(Mutant& m) {
  Stage& stage = any_stage(m);
  for (const DeviceId device : idle_devices(m)) stage.devices.push_back(device);
  if (stage.devices.size() <= static_cast<std::size_t>(m.problem.rules().max_replicas)) return {};
  return Code::replicas_not_allowed;
}

Found replica_of_another_kind(Mutant& m) {
  Stage& stage = any_stage(m);
  for (const DeviceId device : idle_devices(m)) {
    if (m.problem.kind_of(device) == m.problem.kind_of(stage.devices.front())) continue;
    stage.devices.push_back(device);
    return Code::replicas_not_allowed;
  }
  return {};
}

Found replica_of_a_pinned_op(Mutant& m) {
  const std::vector<DeviceId> idle = idle_devices(m);
  for (Stage& stage : m.plan.stages) {
    const bool pinned =
        std::ranges::any_of(stage.ops, [&](OpId op) { return m.problem.op(op).pinned_to.valid(); });
    if (!pinned || idle.empty()) continue;
    stage.devices.push_back(idle.front());
    return Code::pin_broken;
  }
  return {};
}

Found placed_beside_its_stage(Mutant& m) {
  const OpId op{m.random.below(m.problem.op_count())};
  const DeviceId home = m.plan.placement[op];
  m.plan.placement[op] = DeviceId{(home.index() + 1) % m.problem.device_count()};
  if (m.plan.placement[op] == home || !possible(m.problem, m.plan.placement)) return {};
  return Code::stages_inconsistent;
}

Found out_of_order(Mutant& m) {
  if (m.problem.rules().contiguity != Contiguity::joint) return {};
  const auto stage_of = [&](OpId op) {
    return std::ranges::find_if(
        m.plan.stages, [&](const Stage& stage) { return std::ranges::count(stage.ops, op) > 0; });
  };
  // Gradients go the other way.
  const auto forward = [&](OpId op) { return !m.problem.op(op).backward; };
  for (const TensorId tensor : m.problem.tensors()) {
    const auto from = stage_of(m.problem.producer(tensor));
    for (const OpId reader : m.problem.consumers(tensor)) {
      const auto to = stage_of(reader);
      if (from == to || !forward(reader) || !forward(m.problem.producer(tensor))) continue;
      std::iter_swap(from, to);
      return Code::stages_out_of_order;
    }
  }
  return {};
}

bool chooses_period(const Mutant& m) {
  return m.problem.resource_count() > 0 && m.problem.rules().training == TrainingMode::interleaved;
}

Found period_too_short(Mutant& m) {
  if (!chooses_period(m)) return {};
  double most = 0;
  for (const Stage& stage : m.plan.stages) most = std::max(most, stage.load);
  if (most == 0) return {};
  m.plan.value = 0.99 * most;
  return Code::period_too_short;
}

Found stages_at_once(Mutant& m) {
  if (!chooses_period(m)) return {};
  for (Stage& a : m.plan.stages) {
    for (Stage& b : m.plan.stages) {
      if (&a == &b || a.load < m.plan.value / 100 || b.load < m.plan.value / 100) continue;
      const auto share = [&](const Stage& stage) {
        double most = 0;
        for (const OpId op : stage.ops) {
          most = std::max(most, m.problem.share(op, stage.devices.front()));
        }
        return most;
      };
      if (!exceed_together(m.problem, a.devices.front(), share(a), b.devices.front(), share(b))) {
        continue;
      }
      a.offset = b.offset = 0.0;
      return Code::resource_exceeded;
    }
  }
  return {};
}

constexpr MutationOperator kOfPipelines[] = {
    {"a load that is more",
     [](Mutant& m) -> Found {
       Stage& stage = any_stage(m);
       stage.load += m.horizon / 100;
       return Code::stage_load_wrong;
     }},
    {"a load that is less",
     [](Mutant& m) -> Found {
       Stage& stage = any_stage(m);
       stage.load -= m.horizon / 100;
       return Code::stage_load_wrong;
     }},
    {"an op in no stage",
     [](Mutant& m) -> Found {
       any_stage(m).ops.pop_back();
       return Code::stages_inconsistent;
     }},
    {"an op in a stage twice",
     [](Mutant& m) -> Found {
       Stage& stage = any_stage(m);
       stage.ops.push_back(OpId{stage.ops.front()});
       return Code::stages_inconsistent;
     }},
    {"an op that does not exist",
     [](Mutant& m) -> Found {
       any_stage(m).ops.emplace_back(m.problem.op_count());
       return Code::stages_inconsistent;
     }},
    {"a stage without devices",
     [](Mutant& m) -> Found {
       any_stage(m).devices.clear();
       return Code::stages_inconsistent;
     }},
    {"a stage on a device that does not exist",
     [](Mutant& m) -> Found {
       any_stage(m).devices.emplace_back(m.problem.device_count());
       return Code::stages_inconsistent;
     }},
    {"a device in two stages",
     [](Mutant& m) -> Found {
       Stage& stage = any_stage(m);
       stage.devices.push_back(DeviceId{any_stage(m).devices.front()});
       return Code::stages_inconsistent;
     }},
    {"an op placed beside its stage", placed_beside_its_stage},
    {"too many replicas", too_many_replicas},
    {"a replica of another kind", replica_of_another_kind},
    {"a replica of a pinned op", replica_of_a_pinned_op},
    {"stages out of order", out_of_order},
    {"a period below a load", period_too_short},
    {"stages at once on a resource", stages_at_once},
    {"an offset that is no number",
     [](Mutant& m) -> Found {
       if (m.problem.resource_count() == 0) return {};
       any_stage(m).offset = kNan;
       return Code::not_a_number;
     }},
    {"a negative offset",
     [](Mutant& m) -> Found {
       if (m.problem.resource_count() == 0) return {};
       any_stage(m).offset = -m.horizon;
       return Code::not_a_number;
     }},
};

// Calls

Call& any_call(Mutant& m) {
  return m.plan.calls[m.random.below(m.plan.calls.size())];
}

std::ptrdiff_t calls_of(const Mutant& m, DeviceId device) {
  return std::ranges::count(m.plan.calls, device, &Call::device);
}

void move_to(Call& call, double start) {
  call.end = start + (call.end - call.start);
  call.start = start;
}

// A call that reads what another one makes, moved to before that one's end.
Found before_its_inputs(Mutant& m) {
  for (Call& call : m.plan.calls) {
    if (calls_of(m, call.device) > 1) continue;
    for (const Call& other : m.plan.calls) {
      const bool reads = std::ranges::any_of(other.ops, [&](OpId op) {
        return std::ranges::any_of(m.problem.successors(op), [&](OpId next) {
          return std::ranges::count(call.ops, next) > 0;
        });
      });
      if (&other == &call || !reads || other.end < m.horizon / 50) continue;
      move_to(call, other.end - m.horizon / 100);
      return Code::call_start_too_early;
    }
  }
  return {};
}

Found calls_overlap(Mutant& m) {
  for (Call& call : m.plan.calls) {
    for (const Call& other : m.plan.calls) {
      if (&call == &other || call.device != other.device || other.start > call.start) continue;
      if (other.end - other.start < m.horizon / 25) continue;
      if (call.end - call.start < m.horizon / 25) continue;
      if (calls_of(m, call.device) > 2) continue;
      move_to(call, (other.start + other.end) / 2);
      return Code::call_overlap;
    }
  }
  return {};
}

Found too_many_calls(Mutant& m) {
  for (Call& call : m.plan.calls) {
    if (call.ops.size() < 2 || calls_of(m, call.device) < m.problem.rules().calls_per_device) {
      continue;
    }
    Call part = call;
    part.ops = {call.ops.back()};
    call.ops.pop_back();
    m.plan.calls.push_back(std::move(part));
    return Code::too_many_calls;
  }
  return {};
}

Found calls_at_once(Mutant& m) {
  const auto share = [&](const Call& call) {
    double most = 0;
    for (const OpId op : call.ops) most = std::max(most, m.problem.share(op, call.device));
    return most;
  };
  for (const Call& a : m.plan.calls) {
    for (Call& b : m.plan.calls) {
      if (&a == &b || calls_of(m, b.device) > 1 || a.device == b.device) continue;
      if (a.end - a.start < m.horizon / 50 || b.end - b.start < m.horizon / 50) continue;
      if (!exceed_together(m.problem, a.device, share(a), b.device, share(b))) continue;
      move_to(b, a.start);
      return Code::resource_exceeded;
    }
  }
  return {};
}

Found op_of_another_device(Mutant& m) {
  Call& call = any_call(m);
  for (const OpId op : m.problem.ops()) {
    if (m.plan.placement[op] == call.device) continue;
    call.ops.push_back(op);
    return Code::calls_inconsistent;
  }
  return {};
}

Found call_of_another_device(Mutant& m) {
  Call& call = any_call(m);
  call.device = DeviceId{(call.device.index() + 1) % m.problem.device_count()};
  return Code::calls_inconsistent;
}

constexpr MutationOperator kOfCalls[] = {
    {"a call less",
     [](Mutant& m) -> Found {
       if (m.plan.calls.size() < 2) return {};
       m.plan.calls.pop_back();
       return Code::call_missing;
     }},
    {"an op in two calls",
     [](Mutant& m) -> Found {
       const OpId op = any_call(m).ops.front();
       any_call(m).ops.push_back(op);
       return Code::calls_inconsistent;
     }},
    {"a call of another device", call_of_another_device},
    {"an op of another device", op_of_another_device},
    {"a call of no op",
     [](Mutant& m) -> Found {
       any_call(m).ops.clear();
       return Code::calls_inconsistent;
     }},
    {"a call that takes longer",
     [](Mutant& m) -> Found {
       any_call(m).end += m.horizon / 100;
       return Code::call_duration_wrong;
     }},
    {"a call that takes less",
     [](Mutant& m) -> Found {
       Call& call = any_call(m);
       if (call.end - call.start < m.horizon / 50) return {};
       call.end -= m.horizon / 100;
       return Code::call_duration_wrong;
     }},
    {"a call that is no number",
     [](Mutant& m) -> Found {
       any_call(m).start = kNan;
       return Code::not_a_number;
     }},
    {"a call before its inputs", before_its_inputs},
    {"two calls of a device at once", calls_overlap},
    {"too many calls", too_many_calls},
    {"calls at once on a resource", calls_at_once},
};

}  // namespace

std::span<const MutationOperator> operators_of_pipelines() {
  return kOfPipelines;
}

std::span<const MutationOperator> operators_of_calls() {
  return kOfCalls;
}

}  // namespace placewright::testing
