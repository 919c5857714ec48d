#include "report/critical_chain.h"

#include <algorithm>
#include <cmath>

namespace placewright {
namespace {

struct Activity {
  ChainLink link;
  double start = 0;
  double end = 0;
  std::vector<std::size_t> inputs;  // activities whose result it needs
  DeviceId device;                  // op, call: where it runs
  DeviceId out_port;                // transfer
  DeviceId in_port;
};

// Ops first, then transfers (schedules) or calls.
std::vector<Activity> activities_of_schedule(const Problem& problem, const Plan& plan) {
  const Schedule& schedule = *plan.schedule;
  std::vector<Activity> activities(problem.op_count());
  Rows<TensorId, std::size_t> moved;
  {
    std::vector<std::pair<TensorId, std::size_t>> pairs;
    for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
      pairs.emplace_back(schedule.transfers[i].tensor, problem.op_count() + i);
    }
    moved = Rows<TensorId, std::size_t>::from_pairs(problem.tensor_count(), pairs);
  }
  for (const OpId op : problem.ops()) {
    Activity& activity = activities[op.index()];
    activity.link = {ChainLink::Kind::op, op.index()};
    activity.start = schedule.start[op];
    activity.end = schedule.end[op];
    activity.device = plan.placement[op];
    for (const TensorId tensor : problem.inputs(op)) {
      const OpId producer = problem.producer(tensor);
      if (plan.placement[producer] == activity.device || problem.on_host(activity.device)) {
        activity.inputs.push_back(producer.index());
      }
      for (const std::size_t transfer : moved[tensor]) {
        const Transfer& movement = schedule.transfers[transfer - problem.op_count()];
        const bool arrives = movement.leg == Leg::out ? problem.on_host(activity.device)
                                                      : movement.to == activity.device;
        if (arrives) activity.inputs.push_back(transfer);
      }
    }
  }
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    Activity activity;
    activity.link = {ChainLink::Kind::transfer, i};
    activity.start = transfer.start;
    activity.end = transfer.end;
    activity.inputs.push_back(problem.producer(transfer.tensor).index());
    for (const std::size_t other : moved[transfer.tensor]) {
      if (transfer.leg == Leg::in &&
          schedule.transfers[other - problem.op_count()].leg == Leg::out) {
        activity.inputs.push_back(other);
      }
    }
    if (problem.rules().congestion) {
      activity.out_port = transfer.from;
      activity.in_port = transfer.to;
    }
    activities.push_back(std::move(activity));
  }
  return activities;
}

Table<OpId, std::size_t> call_of_ops(const Problem& problem, const Plan& plan) {
  Table<OpId, std::size_t> call_of(problem.op_count(), plan.calls.size());
  for (std::size_t call = 0; call < plan.calls.size(); ++call) {
    for (const OpId op : plan.calls[call].ops) call_of[op] = call;
  }
  return call_of;
}

std::vector<Activity> activities_of_calls(const Problem& problem, const Plan& plan) {
  const OpTimes times = times_in_calls(problem, plan);
  const auto call_of = call_of_ops(problem, plan);
  const auto node_of = [&](OpId op) {
    return call_of[op] < plan.calls.size() ? problem.op_count() + call_of[op] : op.index();
  };
  std::vector<Activity> activities(problem.op_count() + plan.calls.size());
  for (const OpId op : problem.ops()) {
    Activity& activity = activities[node_of(op)];
    if (node_of(op) == op.index()) {
      activity.link = {ChainLink::Kind::op, op.index()};
      activity.start = times.start[op];
      activity.end = times.end[op];
    } else {
      activities[op.index()].start = activities[op.index()].end = -1;  // stands for nothing
    }
    for (const OpId before : problem.predecessors(op)) {
      if (node_of(before) != node_of(op)) activity.inputs.push_back(node_of(before));
    }
  }
  for (std::size_t call = 0; call < plan.calls.size(); ++call) {
    Activity& activity = activities[problem.op_count() + call];
    activity.link = {ChainLink::Kind::call, call};
    activity.start = plan.calls[call].start;
    activity.end = plan.calls[call].end;
    activity.device = plan.calls[call].device;
  }
  return activities;
}

class ChainWalk {
 public:
  explicit ChainWalk(std::vector<Activity> activities)
      : activities_(std::move(activities)), visited_(activities_.size(), 0) {
    for (const Activity& activity : activities_) horizon_ = std::max(horizon_, activity.end);
    by_end_.resize(activities_.size());
    for (std::size_t i = 0; i < by_end_.size(); ++i) by_end_[i] = i;
    std::sort(by_end_.begin(), by_end_.end(), [&](std::size_t a, std::size_t b) {
      return activities_[a].end < activities_[b].end;
    });
  }

  std::vector<ChainLink> run() {
    std::vector<ChainLink> chain;
    std::size_t current = last();
    while (current < activities_.size()) {
      visited_[current] = 1;
      const auto [before, reason] = cause(current);
      chain.push_back(activities_[current].link);
      chain.back().reason = reason;
      current = before;
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

 private:
  // Transfers that nothing waits for may end after the last op; the plan's value does not see them.
  [[nodiscard]] std::size_t last() const {
    std::size_t latest = activities_.size();
    for (std::size_t i = 0; i < activities_.size(); ++i) {
      if (activities_[i].link.kind == ChainLink::Kind::transfer || activities_[i].end < 0) continue;
      if (latest == activities_.size() || activities_[i].end > activities_[latest].end) latest = i;
    }
    return latest;
  }

  [[nodiscard]] bool ends_at(std::size_t index, double time) const {
    return !visited_[index] && std::abs(activities_[index].end - time) <= 1e-9 * horizon_;
  }

  [[nodiscard]] std::pair<std::size_t, LinkReason> cause(std::size_t index) const {
    const Activity& activity = activities_[index];
    for (const std::size_t input : activity.inputs) {
      if (ends_at(input, activity.start)) return {input, LinkReason::input};
    }
    const double earliest = activity.start - 1e-9 * horizon_;
    auto other = std::lower_bound(
        by_end_.begin(), by_end_.end(), earliest,
        [&](std::size_t candidate, double time) { return activities_[candidate].end < time; });
    for (; other != by_end_.end() && ends_no_later(*other, activity.start); ++other) {
      if (visited_[*other]) continue;
      const Activity& candidate = activities_[*other];
      if (activity.device.valid() && candidate.device == activity.device) {
        return {*other, LinkReason::device};
      }
      const bool same_port =
          (activity.out_port.valid() && candidate.out_port == activity.out_port) ||
          (activity.in_port.valid() && candidate.in_port == activity.in_port);
      if (same_port) return {*other, LinkReason::port};
    }
    return {activities_.size(), LinkReason::first};
  }

  [[nodiscard]] bool ends_no_later(std::size_t index, double time) const {
    return activities_[index].end <= time + 1e-9 * horizon_;
  }

  std::vector<Activity> activities_;
  std::vector<char> visited_;
  std::vector<std::size_t> by_end_;
  double horizon_ = 0;
};

}  // namespace

OpTimes times_in_calls(const Problem& problem, const Plan& plan) {
  OpTimes times{Table<OpId, double>(problem.op_count(), 0),
                Table<OpId, double>(problem.op_count(), 0)};
  const auto call_of = call_of_ops(problem, plan);
  for (const OpId op : problem.topological_order()) {
    if (call_of[op] < plan.calls.size()) {
      times.start[op] = plan.calls[call_of[op]].start;
      times.end[op] = plan.calls[call_of[op]].end;
      continue;
    }
    for (const OpId before : problem.predecessors(op)) {
      times.start[op] = std::max(times.start[op], times.end[before]);
    }
    times.end[op] = times.start[op] + problem.time(op, plan.placement[op]);
  }
  return times;
}

std::vector<ChainLink> critical_chain(const Problem& problem, const Plan& plan) {
  if (problem.op_count() == 0) return {};
  if (plan.schedule) return ChainWalk(activities_of_schedule(problem, plan)).run();
  if (problem.objective() == Objective::call_latency) {
    return ChainWalk(activities_of_calls(problem, plan)).run();
  }
  return {};
}

}  // namespace placewright
