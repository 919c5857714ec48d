#include "verify/calls.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "verify/placement.h"
#include "verify/resources.h"
#include "verify/waiting.h"

namespace placewright {
namespace verifying {
namespace {

// A unit is what starts and ends as a whole: a call, or one op on the host. Calls come first, in
// the order of the plan.
struct Units {
  std::vector<OpId> host_ops;                              // unit = number of calls + position here
  Table<OpId, std::size_t> unit_of;                        // op -> unit
  std::vector<double> duration;                            // by unit
  std::vector<std::pair<std::size_t, std::size_t>> feeds;  // a tensor goes from unit to unit
  std::vector<std::pair<std::size_t, std::size_t>> follows;  // consecutive calls of one device
};

// Each accelerator's calls in order of start; equal starts keep the order of the list.
Table<DeviceId, std::vector<std::size_t>> calls_by_device(const Problem& problem,
                                                          const std::vector<Call>& calls) {
  Table<DeviceId, std::vector<std::size_t>> by_device(problem.device_count());
  for (std::size_t i = 0; i < calls.size(); ++i) by_device[calls[i].device].push_back(i);
  for (std::vector<std::size_t>& mine : by_device) {
    std::stable_sort(mine.begin(), mine.end(), [&](std::size_t left, std::size_t right) {
      return calls[left].start < calls[right].start;
    });
  }
  return by_device;
}

void number_units(const Problem& problem, const Placement& placement,
                  const std::vector<Call>& calls, Units& units) {
  units.unit_of.assign(problem.op_count(), 0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    for (const OpId op : calls[i].ops) units.unit_of[op] = i;
  }
  for (const OpId op : problem.ops()) {
    if (!problem.on_host(placement[op])) continue;
    units.unit_of[op] = calls.size() + units.host_ops.size();
    units.host_ops.push_back(op);
  }
  units.duration.assign(calls.size() + units.host_ops.size(), 0);
  for (const OpId op : problem.ops()) {
    units.duration[units.unit_of[op]] += problem.time(op, placement[op]);
  }
}

// A tensor that leaves its unit is paid once at the end of that call and once at the start of each
// other call that reads it. Host ops pay nothing.
void connect_units(const Problem& problem, const std::vector<Call>& calls, Units& units) {
  const auto pay = [&](std::size_t unit, TensorId tensor,
                       double (Problem::*overhead)(TensorId, DeviceId) const) {
    if (unit >= calls.size()) return;
    units.duration[unit] +=
        problem.host_time(tensor) + (problem.*overhead)(tensor, calls[unit].device);
  };
  std::vector<std::size_t> readers;
  for (const TensorId tensor : problem.tensors()) {
    const std::size_t from = units.unit_of[problem.producer(tensor)];
    readers.clear();
    for (const OpId consumer : problem.consumers(tensor)) {
      if (units.unit_of[consumer] != from) readers.push_back(units.unit_of[consumer]);
    }
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    if (!readers.empty()) pay(from, tensor, &Problem::send_overhead);
    for (const std::size_t to : readers) {
      pay(to, tensor, &Problem::receive_overhead);
      units.feeds.emplace_back(from, to);
    }
  }
  for (const std::vector<std::size_t>& mine : calls_by_device(problem, calls)) {
    for (std::size_t i = 1; i < mine.size(); ++i) units.follows.emplace_back(mine[i - 1], mine[i]);
  }
}

Units units_of(const Problem& problem, const Placement& placement, const std::vector<Call>& calls) {
  Units units;
  number_units(problem, placement, calls, units);
  connect_units(problem, calls, units);
  return units;
}

WaitingOrder order_of(const Units& units) {
  auto edges = units.feeds;
  edges.insert(edges.end(), units.follows.begin(), units.follows.end());
  return waiting_order(units.duration.size(), std::move(edges));
}

// When the inputs of each unit are in host memory, and when each unit ends.
struct Timing {
  std::vector<double> ready;
  std::vector<double> end;

  [[nodiscard]] double value() const {
    return end.empty() ? 0 : *std::max_element(end.begin(), end.end());
  }
};

// Host ops run as soon as they can; `end_of_call(call, ready)` says when a call ends.
template <class EndOfCall>
Timing time_units(const Units& units, std::size_t call_count, const std::vector<std::size_t>& order,
                  const std::vector<std::pair<std::size_t, std::size_t>>& waits,
                  EndOfCall end_of_call) {
  const std::size_t count = units.duration.size();
  std::vector<std::vector<std::size_t>> next(count);
  for (const auto& [from, to] : waits) next[from].push_back(to);
  Timing timing{std::vector<double>(count, 0), std::vector<double>(count, 0)};
  for (const std::size_t unit : order) {
    timing.end[unit] = unit < call_count ? end_of_call(unit, timing.ready[unit])
                                         : timing.ready[unit] + units.duration[unit];
    for (const std::size_t later : next[unit]) {
      timing.ready[later] = std::max(timing.ready[later], timing.end[unit]);
    }
  }
  return timing;
}

Timing timing_of(const Units& units, const std::vector<Call>& calls,
                 const std::vector<std::size_t>& order) {
  return time_units(units, calls.size(), order, units.feeds,
                    [&](std::size_t call, double) { return calls[call].end; });
}

bool check_call_records(const Problem& problem, const Placement& placement,
                        const std::vector<Call>& calls, Findings& findings) {
  const std::size_t before = findings.count();
  Table<OpId, char> called_up(problem.op_count(), 0);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (call.device.index() >= problem.device_count() || problem.on_host(call.device)) {
      findings.add(ViolationCode::calls_inconsistent, call.ops, {}, "{} is on no accelerator",
                   call_name(i));
      continue;
    }
    if (call.ops.empty()) {
      findings.add(ViolationCode::calls_inconsistent, {}, {call.device}, "{} on {} has no op",
                   call_name(i), called(problem, call.device));
    }
    for (const OpId op : call.ops) {
      if (op.index() >= problem.op_count()) {
        findings.add(ViolationCode::calls_inconsistent, {}, {call.device},
                     "{} holds an op that does not exist", call_name(i));
      } else if (std::exchange(called_up[op], char{1}) != 0) {
        findings.add(ViolationCode::calls_inconsistent, {op}, {call.device},
                     "{} is twice in the calls", called(problem, op));
      } else if (placement[op] != call.device) {
        findings.add(ViolationCode::calls_inconsistent, {op}, {placement[op], call.device},
                     "{} is placed on {} and in {} of {}", called(problem, op),
                     called(problem, placement[op]), call_name(i), called(problem, call.device));
      }
    }
  }
  for (const OpId op : problem.ops()) {
    if (called_up[op] != 0 || problem.on_host(placement[op])) continue;
    findings.add(ViolationCode::call_missing, {op}, {placement[op]}, "{} on {} is in no call",
                 called(problem, op), called(problem, placement[op]));
  }
  return findings.count() == before;
}

bool check_numbers(const Problem& problem, const std::vector<Call>& calls, Findings& findings) {
  const std::size_t before = findings.count();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (is_time(calls[i].start) && is_time(calls[i].end)) continue;
    findings.add(ViolationCode::not_a_number, calls[i].ops, {calls[i].device},
                 "{} of {} runs from {} to {}", call_name(i), called(problem, calls[i].device),
                 calls[i].start, calls[i].end);
  }
  return findings.count() == before;
}

void check_call_counts(const Problem& problem, const std::vector<Call>& calls, Findings& findings) {
  const auto by_device = calls_by_device(problem, calls);
  const auto most = static_cast<std::size_t>(problem.rules().calls_per_device);
  for (const DeviceId device : problem.devices()) {
    if (by_device[device].size() <= most) continue;
    std::vector<OpId> ops;
    for (const std::size_t call : by_device[device]) {
      ops.insert(ops.end(), calls[call].ops.begin(), calls[call].ops.end());
    }
    findings.add(ViolationCode::too_many_calls, ops, {device},
                 "{} has {} calls, at most {} are allowed", called(problem, device),
                 by_device[device].size(), most);
  }
}

void report_deadlock(const Problem& problem, const Placement& placement,
                     const std::vector<Call>& calls, const Units& units,
                     const std::vector<std::size_t>& cycle, Findings& findings) {
  std::vector<OpId> ops;
  std::vector<DeviceId> devices;
  std::string circle;
  const auto name = [&](std::size_t unit) {
    if (unit >= calls.size()) {
      return called(problem, units.host_ops[unit - calls.size()]);
    }
    return fmt::format("the call of {} that holds {}", called(problem, calls[unit].device),
                       called(problem, calls[unit].ops.front()));
  };
  for (const std::size_t unit : cycle) {
    const OpId op =
        unit < calls.size() ? calls[unit].ops.front() : units.host_ops[unit - calls.size()];
    ops.push_back(op);
    devices.push_back(placement[op]);
    circle += name(unit) + " -> ";
  }
  circle += name(cycle.front());
  findings.add(ViolationCode::calls_deadlock, ops, devices,
               "calls and host ops wait for each other in a circle: {}", circle);
}

void check_call_times(const Problem& problem, const std::vector<Call>& calls, const Units& units,
                      const Timing& timing, Findings& findings) {
  const double tolerance = kTimeTolerance * timing.value();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (call.start < timing.ready[i] - tolerance) {
      findings.add(
          ViolationCode::call_start_too_early, call.ops, {call.device},
          "the call of {} that holds {} starts at {:.9g}, its inputs are in host memory at "
          "{:.9g}",
          called(problem, call.device), called(problem, call.ops.front()), call.start,
          timing.ready[i]);
    }
    if (std::abs(call.end - call.start - units.duration[i]) > tolerance) {
      findings.add(ViolationCode::call_duration_wrong, call.ops, {call.device},
                   "the call of {} that holds {} runs from {:.9g} to {:.9g}, it takes {:.9g}",
                   called(problem, call.device), called(problem, call.ops.front()), call.start,
                   call.end, units.duration[i]);
    }
  }
  for (const auto& [first, second] : units.follows) {
    if (calls[second].start >= calls[first].end - tolerance) continue;
    std::vector<OpId> ops = calls[first].ops;
    ops.insert(ops.end(), calls[second].ops.begin(), calls[second].ops.end());
    findings.add(ViolationCode::call_overlap, ops, {calls[first].device},
                 "a call of {} starts at {:.9g}, the one before it ends at {:.9g}",
                 called(problem, calls[first].device), calls[second].start, calls[first].end);
  }
}

std::vector<ResourceUse> demand_of_call(const Problem& problem, const Call& call) {
  return demand_of(problem, {&call.device, 1}, call.ops);
}

void check_call_resources(const Problem& problem, const std::vector<Call>& calls, double horizon,
                          Findings& findings) {
  if (!shares_resources(problem)) return;
  ResourceBook book(problem, kTimeTolerance * horizon);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    book.hold(demand_of_call(problem, calls[i]), calls[i].start, calls[i].end, i);
  }
  book.check(
      [&](std::size_t i) {
        return Holder{fmt::format("the call of {} that holds {}", called(problem, calls[i].device),
                                  called(problem, calls[i].ops.front())),
                      calls[i].ops,
                      {calls[i].device}};
      },
      findings);
}

// Calls that a plan leaves out follow from its placement only where none of them uses what others
// may hold: a placement does not say who has it first.
bool check_no_call_shares(const Problem& problem, const std::vector<Call>& calls,
                          Findings& findings) {
  for (const Call& call : calls) {
    if (problem.uses(call.device).empty()) continue;
    findings.add(ViolationCode::call_missing, call.ops, {call.device},
                 "the plan states no calls, and {} shares resources: who has them first must be "
                 "stated",
                 called(problem, call.device));
    return false;
  }
  return true;
}

// For each op: how many visits to `device` a path that ends with the op makes at most. Each visit
// is a run of ops on the device; the last one may still go on.
Table<OpId, std::size_t> visits_to(const Problem& problem, const Placement& placement,
                                   DeviceId device) {
  Table<OpId, std::size_t> visits(problem.op_count(), 0);
  for (const OpId op : problem.topological_order()) {
    const bool here = placement[op] == device;
    if (here) visits[op] = std::max<std::size_t>(visits[op], 1);
    for (const OpId next : problem.successors(op)) {
      const bool arrives = placement[next] == device && !here;
      visits[next] = std::max(visits[next], visits[op] + (arrives ? 1 : 0));
    }
  }
  return visits;
}

// A call for each visit.
std::vector<Call> untimed_calls(const Problem& problem, const Placement& placement) {
  std::vector<Call> calls;
  const auto ops = ops_by_device(problem, placement);
  for (const DeviceId device : problem.devices()) {
    if (problem.on_host(device) || ops[device].empty()) continue;
    const Table<OpId, std::size_t> visits = visits_to(problem, placement, device);
    const std::size_t first = calls.size();
    for (const OpId op : ops[device]) {
      const std::size_t index = first + visits[op] - 1;
      while (calls.size() <= index) calls.push_back({device, {}, 0, 0});
      calls[index].ops.push_back(op);
    }
  }
  return calls;
}

}  // namespace

void check_calls(const Problem& problem, const Plan& plan, Findings& findings) {
  const auto ops = ops_by_space(problem, plan.placement);
  for (const SpaceId space : problem.spaces()) {
    check_resident_memory(problem, {space, ops[space]}, findings);
  }
  const std::vector<Call> calls =
      plan.calls.empty() ? timed_calls_of(problem, plan.placement) : plan.calls;
  if (!check_call_records(problem, plan.placement, calls, findings)) return;
  check_call_counts(problem, calls, findings);
  if (!plan.calls.empty() && !check_numbers(problem, calls, findings)) return;

  const Units units = units_of(problem, plan.placement, calls);
  const WaitingOrder waiting = order_of(units);
  if (!waiting.cycle.empty()) {
    report_deadlock(problem, plan.placement, calls, units, waiting.cycle, findings);
    return;
  }
  if (plan.calls.empty() && !check_no_call_shares(problem, calls, findings)) return;
  const Timing timing = timing_of(units, calls, waiting.order);
  check_call_times(problem, calls, units, timing, findings);
  check_call_resources(problem, calls, timing.value(), findings);
  check_value(plan.value, timing.value(), findings);
}

double call_value(const Problem& problem, const Plan& plan) {
  const std::vector<Call> calls =
      plan.calls.empty() ? timed_calls_of(problem, plan.placement) : plan.calls;
  Findings ignored;
  if (!check_call_records(problem, plan.placement, calls, ignored)) return kInfinity;
  const Units units = units_of(problem, plan.placement, calls);
  const WaitingOrder waiting = order_of(units);
  return waiting.cycle.empty() ? timing_of(units, calls, waiting.order).value() : kInfinity;
}

}  // namespace verifying

std::vector<Call> timed_calls_of(const Problem& problem, const Placement& placement) {
  using namespace verifying;
  std::vector<Call> calls = untimed_calls(problem, placement);
  const Units units = units_of(problem, placement, calls);
  const std::vector<std::size_t> order = order_of(units).order;
  if (order.size() < units.duration.size()) {
    for (Call& call : calls) call.start = call.end = kInfinity;
    return calls;
  }
  auto waits = units.feeds;
  waits.insert(waits.end(), units.follows.begin(), units.follows.end());
  const double all = std::accumulate(units.duration.begin(), units.duration.end(), 0.0);
  ResourceBook book(problem, kTimeTolerance * all);
  time_units(units, calls.size(), order, waits, [&](std::size_t i, double ready) {
    const auto demand = demand_of_call(problem, calls[i]);
    calls[i].start = book.first_fit(demand, ready, units.duration[i]);
    calls[i].end = calls[i].start + units.duration[i];
    book.hold(demand, calls[i].start, calls[i].end, i);
    return calls[i].end;
  });
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& left, const Call& right) { return left.start < right.start; });
  return calls;
}

}  // namespace placewright
