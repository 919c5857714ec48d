#include "evaluate/schedule.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <utility>

#include "evaluate/mean_transfer.h"
#include "evaluate/rules/value.h"

namespace placewright {
namespace {

constexpr double kNotSent = -1;

// Records nothing: the evaluator runs for the value alone.
struct NoRecord {
  void op(OpId, double, double) const {}
  void transfer(const Transfer&) const {}
};

struct Record {
  Schedule schedule;
  void op(OpId id, double start, double end) {
    schedule.start[id] = start;
    schedule.end[id] = end;
  }
  void transfer(const Transfer& transfer) { schedule.transfers.push_back(transfer); }
};

}  // namespace

double schedule_value(const Problem& problem, const Table<OpId, double>& end) {
  if (problem.objective() == Objective::latency) {
    return *std::max_element(end.begin(), end.end());
  }
  Table<ModelId, double> completion(problem.model_count());
  for (const ModelId model : problem.models()) completion[model] = problem.model(model).arrival;
  for (const OpId op : problem.ops()) {
    double& last = completion[problem.op(op).model];
    last = std::max(last, end[op]);
  }
  return total_completion(problem, [&](ModelId model) { return completion[model]; });
}

ScheduleEvaluator::ScheduleEvaluator(const Problem& problem)
    : problem_(problem),
      end_(problem.op_count()),
      lanes_(problem),
      resources_(problem),
      ports_(problem),
      arrivals_begin_(problem.tensor_count()),
      arrivals_count_(problem.tensor_count()),
      out_end_(problem.interconnect() == InterconnectKind::host ? problem.tensor_count() : 0) {
  std::size_t slots = 0;
  for (const TensorId tensor : problem.tensors()) {
    arrivals_begin_[tensor] = static_cast<std::uint32_t>(slots);
    const std::size_t readers = problem.consumers(tensor).size();
    if (readers > 1) slots += std::min(readers, problem.space_count());
  }
  arrivals_.resize(slots);
}

double ScheduleEvaluator::value(std::span<const OpId> order, const Placement& placement) {
  NoRecord nothing;
  return run(order, placement, nothing);
}

Schedule ScheduleEvaluator::schedule(std::span<const OpId> order, const Placement& placement) {
  Record record;
  record.schedule.start.assign(problem_.op_count(), 0);
  record.schedule.end.assign(problem_.op_count(), 0);
  run(order, placement, record);
  if (problem_.has_shared_spaces()) {
    for (Transfer& transfer : record.schedule.transfers) {
      if (!transfer.to.valid()) continue;
      transfer.to =
          receiving_device(problem_, placement, transfer.tensor, problem_.space(transfer.to));
    }
  }
  return std::move(record.schedule);
}

template <class Recorder>
double ScheduleEvaluator::run(std::span<const OpId> order, const Placement& placement,
                              Recorder& recorder) {
  lanes_.clear();
  resources_.clear();
  ports_.clear();
  arrivals_count_.assign(problem_.tensor_count(), 0);
  out_end_.assign(out_end_.size(), kNotSent);
  const bool overheads = problem_.has_overheads();
  if (overheads) durations_ = op_durations(problem_, placement);

  const bool single_model = problem_.model_count() == 1;
  const double first_arrival = problem_.model(ModelId{0}).arrival;
  double makespan = 0;
  for (const OpId op : order) {
    const DeviceId device = placement[op];
    const double ready = inputs_there(
        problem_, op, placement, single_model ? first_arrival : released(problem_, op),
        [&](OpId producer) { return end_[producer]; },
        [&](TensorId input, DeviceId from, DeviceId to) {
          return fetch(input, from, to, recorder);
        });
    const double duration = overheads ? durations_[op] : problem_.time(op, device);
    const double start = start_op(op, device, ready, duration, lanes_, resources_);
    end_[op] = start + duration;
    makespan = std::max(makespan, end_[op]);
    recorder.op(op, start, end_[op]);
  }
  if (makespan == kInfinity || problem_.objective() == Objective::latency) return makespan;
  return schedule_value(problem_, end_);
}

template <class Recorder>
double ScheduleEvaluator::fetch(TensorId tensor, DeviceId from, DeviceId to, Recorder& recorder) {
  if (problem_.consumers(tensor).size() == 1) return send(tensor, from, to, recorder);
  const SpaceId space = problem_.space(to);
  Arrival* const begin = &arrivals_[arrivals_begin_[tensor]];
  std::uint32_t& count = arrivals_count_[tensor];
  for (Arrival* known = begin; known != begin + count; ++known) {
    if (known->space == space) return known->time;
  }
  const double time = send(tensor, from, to, recorder);
  begin[count++] = Arrival{space, time};
  return time;
}

template <class Recorder>
double ScheduleEvaluator::send(TensorId tensor, DeviceId from, DeviceId to, Recorder& recorder) {
  const auto carry = [&](const Hop& hop, double ready) {
    const bool out = hop.leg == Leg::out;
    if (out && out_end_[tensor] != kNotSent) return out_end_[tensor];
    const double start = ports_.start(problem_, hop, ready, hop.length);
    const double end = start + hop.length;
    if (out) out_end_[tensor] = end;
    recorder.transfer({tensor, hop.leg, hop.from, hop.to, start, end});
    return end;
  };
  return along_route(problem_, tensor, from, to, end_[problem_.producer(tensor)], carry);
}

std::vector<OpId> list_order(const Problem& problem, const Table<OpId, double>& priority) {
  const auto less_urgent = [&](OpId a, OpId b) {
    return priority[a] != priority[b] ? priority[a] < priority[b] : a > b;
  };
  std::priority_queue<OpId, std::vector<OpId>, decltype(less_urgent)> ready(less_urgent);
  Table<OpId, std::size_t> missing(problem.op_count());
  for (const OpId op : problem.ops()) {
    missing[op] = problem.predecessors(op).size();
    if (missing[op] == 0) ready.push(op);
  }
  std::vector<OpId> order;
  order.reserve(problem.op_count());
  while (!ready.empty()) {
    const OpId op = ready.top();
    ready.pop();
    order.push_back(op);
    for (const OpId successor : problem.successors(op)) {
      if (--missing[successor] == 0) ready.push(successor);
    }
  }
  return order;
}

std::vector<OpId> order_of(const Problem& problem, const Schedule& schedule) {
  std::vector<OpId> order(problem.topological_order().begin(), problem.topological_order().end());
  std::stable_sort(order.begin(), order.end(),
                   [&](OpId a, OpId b) { return schedule.start[a] < schedule.start[b]; });
  return order;
}

double mean_time(const Problem& problem, OpId op) {
  double sum = 0;
  double count = 0;
  for (const DeviceId device : problem.devices()) {
    if (!problem.allowed(op, device)) continue;
    sum += problem.time(op, device);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

Table<OpId, double> upward_ranks(const Problem& problem) {
  const Table<TensorId, double> transfer = mean_transfer_times(problem);
  Table<OpId, double> rank(problem.op_count(), 0);
  const auto order = problem.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    double tail = 0;
    for (const TensorId output : problem.outputs(*op)) {
      const auto consumers = problem.consumers(output);
      if (consumers.empty()) continue;
      double longest = 0;
      for (const OpId consumer : consumers) longest = std::max(longest, rank[consumer]);
      tail = std::max(tail, transfer[output] + longest);
    }
    rank[*op] = mean_time(problem, *op) + tail;
  }
  return rank;
}

Plan schedule_plan(const Problem& problem, Placement placement, Schedule schedule) {
  Plan plan;
  plan.placement = std::move(placement);
  plan.value = schedule_value(problem, schedule.end);
  plan.schedule = std::move(schedule);
  return plan;
}

}  // namespace placewright
