#include <limits>
#include <utility>

#include "support/plan_mutants.h"

namespace placewright::testing {
namespace {

using Code = ViolationCode;
using Found = std::optional<ViolationCode>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Far above the verifier's tolerance, far below most times.
double little(const Mutant& m) {
  return m.horizon / 100;
}

double length(const Mutant& m, OpId op) {
  return m.plan.schedule->end[op] - m.plan.schedule->start[op];
}

OpId any_op(Mutant& m) {
  return OpId{m.random.below(m.problem.op_count())};
}

void move_to(Mutant& m, OpId op, double start) {
  const double lasts = length(m, op);
  m.plan.schedule->start[op] = start;
  m.plan.schedule->end[op] = start + lasts;
}

Transfer* any_transfer(Mutant& m) {
  auto& all = m.plan.schedule->transfers;
  return all.empty() ? nullptr : &all[m.random.below(all.size())];
}

void move_to(Transfer& transfer, double start) {
  transfer.end = start + (transfer.end - transfer.start);
  transfer.start = start;
}

template <class Change>
Found with_transfer(Mutant& m, Code found, Change change) {
  Transfer* const transfer = any_transfer(m);
  if (transfer == nullptr) return {};
  change(*transfer);
  return found;
}

Found before_its_input(Mutant& m) {
  std::vector<std::pair<OpId, double>> late;
  for (const TensorId tensor : m.problem.tensors()) {
    const double there = m.plan.schedule->end[m.problem.producer(tensor)];
    if (there < 2 * little(m)) continue;
    for (const OpId reader : m.problem.consumers(tensor)) late.emplace_back(reader, there);
  }
  const auto chosen = one_of(late, m.random);
  if (!chosen) return {};
  move_to(m, chosen->first, chosen->second - little(m));
  return Code::input_not_arrived;
}

Found before_its_model(Mutant& m) {
  const OpId op = any_op(m);
  const double arrival = m.problem.model(m.problem.op(op).model).arrival;
  if (arrival < 2 * little(m)) return {};
  move_to(m, op, arrival - little(m));
  return Code::starts_before_arrival;
}

// Pairs of ops that take their time and satisfy `what`.
template <class What>
std::optional<std::pair<OpId, OpId>> pair_of_ops(Mutant& m, What what) {
  std::vector<std::pair<OpId, OpId>> pairs;
  for (const OpId a : m.problem.ops()) {
    for (const OpId b : m.problem.ops()) {
      if (a == b || length(m, a) < 2 * little(m) || length(m, b) < 2 * little(m)) continue;
      if (what(a, b)) pairs.emplace_back(a, b);
    }
  }
  return one_of(pairs, m.random);
}

Found two_ops_at_once(Mutant& m) {
  const Placement& placement = m.plan.placement;
  const auto pair = pair_of_ops(m, [&](OpId a, OpId b) {
    return placement[a] == placement[b] && m.problem.device(placement[a]).lanes == 1;
  });
  if (!pair) return {};
  move_to(m, pair->second, m.plan.schedule->start[pair->first]);
  return Code::device_overlap;
}

Found a_lane_less(Mutant& m) {
  const Placement& placement = m.plan.placement;
  const Schedule& schedule = *m.plan.schedule;
  const auto pair = pair_of_ops(m, [&](OpId a, OpId b) {
    return placement[a] == placement[b] && schedule.start[b] >= schedule.start[a] &&
           schedule.end[a] - schedule.start[b] > little(m);
  });
  if (!pair) return {};
  m.draft.cluster.devices[placement[pair->first].index()].lanes = 1;
  return Code::device_overlap;
}

Found more_than_there_is(Mutant& m) {
  const Placement& placement = m.plan.placement;
  const auto pair = pair_of_ops(m, [&](OpId a, OpId b) {
    return exceed_together(m.problem, placement[a], m.problem.share(a, placement[a]), placement[b],
                           m.problem.share(b, placement[b]));
  });
  if (!pair) return {};
  move_to(m, pair->second, m.plan.schedule->start[pair->first]);
  return Code::resource_exceeded;
}

Found unneeded(Mutant& m) {
  std::vector<Transfer> extra;
  const bool host = m.problem.interconnect() == InterconnectKind::host;
  for (const TensorId tensor : m.problem.tensors()) {
    const DeviceId home = m.plan.placement[m.problem.producer(tensor)];
    for (const DeviceId to : m.problem.devices()) {
      bool read = m.problem.same_space(home, to);
      for (const OpId reader : m.problem.consumers(tensor)) {
        read = read || m.problem.same_space(m.plan.placement[reader], to);
      }
      if (read) continue;
      extra.push_back({tensor, host ? Leg::in : Leg::direct, host ? DeviceId{} : home, to, 0, 0});
    }
  }
  const auto transfer = one_of(extra, m.random);
  if (!transfer) return {};
  m.plan.schedule->transfers.push_back(*transfer);
  return Code::transfer_unneeded;
}

Found to_a_neighbour(Mutant& m) {
  Transfer* const transfer = any_transfer(m);
  if (transfer == nullptr || !transfer->to.valid()) return {};
  for (const DeviceId device : m.problem.devices()) {
    if (device == transfer->to || !m.problem.same_space(device, transfer->to)) continue;
    transfer->to = device;
    return Code::transfer_receiver_wrong;
  }
  return {};
}

Found from_elsewhere(Mutant& m) {
  Transfer* const transfer = any_transfer(m);
  if (transfer == nullptr || !transfer->from.valid() || m.problem.device_count() < 2) return {};
  transfer->from = DeviceId{(transfer->from.index() + 1) % m.problem.device_count()};
  return Code::transfer_endpoints_wrong;
}

Found before_its_tensor(Mutant& m) {
  Transfer* const transfer = any_transfer(m);
  if (transfer == nullptr) return {};
  const double there = m.plan.schedule->end[m.problem.producer(transfer->tensor)];
  if (there < 2 * little(m)) return {};
  move_to(*transfer, there - little(m));
  return Code::transfer_too_early;
}

Found two_in_a_port(Mutant& m) {
  if (!m.problem.rules().congestion) return {};
  const auto same_port = [&](DeviceId a, DeviceId b) {
    return a.valid() && b.valid() && m.problem.same_space(a, b);
  };
  auto& all = m.plan.schedule->transfers;
  for (Transfer& a : all) {
    for (Transfer& b : all) {
      if (&a == &b || a.end - a.start < little(m) || b.end - b.start < little(m)) continue;
      if (!same_port(a.from, b.from) && !same_port(a.to, b.to)) continue;
      move_to(b, a.start);
      return Code::port_overlap;
    }
  }
  return {};
}

Found all_later(Mutant& m) {
  Schedule& schedule = *m.plan.schedule;
  for (const OpId op : m.problem.ops()) move_to(m, op, schedule.start[op] + little(m));
  for (Transfer& transfer : schedule.transfers) move_to(transfer, transfer.start + little(m));
  return Code::value_wrong;
}

constexpr MutationOperator kOperators[] = {
    {"no schedule",
     [](Mutant& m) -> Found {
       m.plan.schedule.reset();
       return Code::schedule_missing;
     }},
    {"an end too many",
     [](Mutant& m) -> Found {
       m.plan.schedule->end.push_back(1);
       return Code::schedule_missing;
     }},
    {"a start that is no number",
     [](Mutant& m) -> Found {
       m.plan.schedule->start[any_op(m)] = kNan;
       return Code::not_a_number;
     }},
    {"an infinite end",
     [](Mutant& m) -> Found {
       m.plan.schedule->end[any_op(m)] = kInfinity;
       return Code::not_a_number;
     }},
    {"a negative start",
     [](Mutant& m) -> Found {
       m.plan.schedule->start[any_op(m)] = -little(m);
       return Code::not_a_number;
     }},
    {"an op that takes longer",
     [](Mutant& m) -> Found {
       m.plan.schedule->end[any_op(m)] += little(m);
       return Code::op_duration_wrong;
     }},
    {"an op that takes less",
     [](Mutant& m) -> Found {
       m.plan.schedule->start[any_op(m)] += little(m);
       return Code::op_duration_wrong;
     }},
    {"an op before its input", before_its_input},
    {"an op before its model", before_its_model},
    {"two ops at once", two_ops_at_once},
    {"a lane less", a_lane_less},
    {"more of a resource than there is", more_than_there_is},
    {"everything later", all_later},
    {"a transfer less",
     [](Mutant& m) -> Found {
       const Transfer* const transfer = any_transfer(m);
       if (transfer == nullptr) return {};
       auto& all = m.plan.schedule->transfers;
       all.erase(all.begin() + (transfer - all.data()));
       return Code::transfer_missing;
     }},
    {"a transfer twice",
     [](Mutant& m) -> Found {
       const Transfer* const transfer = any_transfer(m);
       if (transfer == nullptr) return {};
       m.plan.schedule->transfers.push_back(Transfer(*transfer));
       return Code::transfer_duplicate;
     }},
    {"a transfer that nobody needs", unneeded},
    {"a transfer to a neighbour of its reader", to_a_neighbour},
    {"a transfer from elsewhere", from_elsewhere},
    {"a transfer on the wrong leg",
     [](Mutant& m) {
       return with_transfer(m, Code::transfer_endpoints_wrong, [](Transfer& transfer) {
         transfer.leg = transfer.leg == Leg::direct ? Leg::out : Leg::direct;
       });
     }},
    {"a transfer of no tensor",
     [](Mutant& m) {
       return with_transfer(m, Code::transfer_endpoints_wrong, [&](Transfer& transfer) {
         transfer.tensor = TensorId{m.problem.tensor_count()};
       });
     }},
    {"a transfer to nowhere",
     [](Mutant& m) {
       return with_transfer(m, Code::transfer_endpoints_wrong, [&](Transfer& transfer) {
         transfer.to = transfer.leg == Leg::out ? DeviceId{0} : DeviceId{m.problem.device_count()};
       });
     }},
    {"a transfer that takes longer",
     [](Mutant& m) {
       return with_transfer(m, Code::transfer_duration_wrong,
                            [&](Transfer& transfer) { transfer.end += little(m); });
     }},
    {"a transfer that is no number",
     [](Mutant& m) {
       return with_transfer(m, Code::not_a_number,
                            [](Transfer& transfer) { transfer.start = kNan; });
     }},
    {"a transfer before its tensor", before_its_tensor},
    {"two transfers in a port", two_in_a_port},
};

}  // namespace

std::span<const MutationOperator> operators_of_schedules() {
  return kOperators;
}

}  // namespace placewright::testing
