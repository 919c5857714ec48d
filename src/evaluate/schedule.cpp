#include "evaluate/schedule.h"

#include <algorithm>
#include <cassert>
#include <queue>
#include <utility>

#include "evaluate/activities.h"
#include "evaluate/mean_transfer.h"
#include "problem/lanes.h"

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
  double total = 0;
  for (const ModelId model : problem.models()) {
    total += problem.model(model).weight * (completion[model] - problem.model(model).arrival);
  }
  return total;
}

Table<OpId, double> op_durations(const Problem& problem, const Placement& placement) {
  Table<OpId, double> durations(problem.op_count());
  for (const OpId op : problem.ops()) durations[op] = problem.time(op, placement[op]);
  if (!problem.has_overheads()) return durations;

  const bool host = problem.interconnect() == InterconnectKind::host;
  Table<DeviceId, OpId> first_reader(problem.device_count());
  Table<SpaceId, TensorId> reached(problem.space_count());  // by a transfer of this tensor
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    const DeviceId from = placement[producer];
    std::size_t destinations = 0;
    bool handed_over = false;
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      if (to == from) continue;
      if (problem.same_space(from, to)) {
        handed_over = true;
      } else if (std::exchange(reached[problem.space(to)], tensor) != tensor) {
        ++destinations;
      }
      OpId& first = first_reader[to];
      if (!first.valid() || problem.topological_rank(consumer) < problem.topological_rank(first)) {
        first = consumer;
      }
    }
    if (destinations == 0 && !handed_over) continue;
    for (const OpId consumer : problem.consumers(tensor)) {
      const DeviceId to = placement[consumer];
      const OpId first = std::exchange(first_reader[to], OpId{});
      if (!first.valid()) continue;
      if (host && problem.on_host(to) && !problem.same_space(from, to)) continue;
      durations[first] += problem.receive_overhead(tensor, to);
    }
    if (host) destinations = destinations > 0 && !problem.on_host(from) ? 1 : 0;
    const std::size_t sends = destinations + (handed_over ? 1 : 0);
    durations[producer] += static_cast<double>(sends) * problem.send_overhead(tensor, from);
  }
  return durations;
}

ScheduleEvaluator::ScheduleEvaluator(const Problem& problem)
    : problem_(problem),
      end_(problem.op_count()),
      lanes_(problem.device_count()),
      resources_(problem),
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
  for (const DeviceId device : problem.devices()) {
    if (useful_lanes(problem, device) > 1) has_lanes_ = true;
  }
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
  device_free_.assign(problem_.device_count(), 0);
  resources_.clear();
  out_free_.assign(problem_.space_count(), 0);
  in_free_.assign(problem_.space_count(), 0);
  arrivals_count_.assign(problem_.tensor_count(), 0);
  out_end_.assign(out_end_.size(), kNotSent);
  completion_.assign(problem_.model_count(), 0);
  if (has_lanes_) {
    for (const DeviceId device : problem_.devices()) {
      lanes_[device.index()].assign(static_cast<std::size_t>(useful_lanes(problem_, device)), 0);
    }
  }
  const bool overheads = problem_.has_overheads();
  if (overheads) durations_ = op_durations(problem_, placement);

  const bool single_model = problem_.model_count() == 1;
  const double first_arrival = problem_.model(ModelId{0}).arrival;
  double makespan = 0;
  for (const OpId op : order) {
    const DeviceId device = placement[op];
    double ready = single_model ? first_arrival : problem_.model(problem_.op(op).model).arrival;
    for (const TensorId input : problem_.inputs(op)) {
      const OpId producer = problem_.producer(input);
      const DeviceId from = placement[producer];
      const bool here = problem_.same_space(from, device);
      const double there = here ? end_[producer] : fetch(input, from, device, recorder);
      ready = std::max(ready, there);
    }
    const double duration = overheads ? durations_[op] : problem_.time(op, device);
    const double start = start_on(op, device, ready, duration);
    end_[op] = start + duration;
    makespan = std::max(makespan, end_[op]);
    recorder.op(op, start, end_[op]);
  }
  if (makespan == kInfinity || problem_.objective() == Objective::latency) return makespan;
  return schedule_value(problem_, end_);
}

double ScheduleEvaluator::start_on(OpId op, DeviceId device, double ready, double duration) {
  if (duration == 0) return ready;
  double* free = &device_free_[device];
  if (has_lanes_) {
    auto& lanes = lanes_[device.index()];
    free = &*std::min_element(lanes.begin(), lanes.end());
  }
  double start = std::max(ready, *free);
  if (resources_.any()) {
    start = resources_.earliest(op, device, start, duration);
    resources_.hold(op, device, start, duration);
  }
  *free = start + duration;
  return start;
}

template <class Recorder>
double ScheduleEvaluator::fetch(TensorId tensor, DeviceId from, DeviceId to, Recorder& recorder) {
  const bool links = problem_.interconnect() == InterconnectKind::links;
  const auto send = [&] {
    return links ? fetch_by_link(tensor, from, to, recorder)
                 : fetch_by_host(tensor, from, to, recorder);
  };
  if (problem_.consumers(tensor).size() == 1) return send();

  const SpaceId space = problem_.space(to);
  Arrival* const begin = &arrivals_[arrivals_begin_[tensor]];
  std::uint32_t& count = arrivals_count_[tensor];
  for (Arrival* known = begin; known != begin + count; ++known) {
    if (known->space == space) return known->time;
  }
  const double time = send();
  begin[count++] = Arrival{space, time};
  return time;
}

template <class Recorder>
double ScheduleEvaluator::fetch_by_link(TensorId tensor, DeviceId from, DeviceId to,
                                        Recorder& recorder) {
  const double duration = problem_.link_time(tensor, from, to);
  double start = end_[problem_.producer(tensor)];
  if (duration > 0 && problem_.rules().congestion) {
    double& out_free = out_free_[problem_.space(from)];
    double& in_free = in_free_[problem_.space(to)];
    start = std::max({start, out_free, in_free});
    out_free = in_free = start + duration;
  }
  recorder.transfer({tensor, Leg::direct, from, to, start, start + duration});
  return start + duration;
}

template <class Recorder>
double ScheduleEvaluator::fetch_by_host(TensorId tensor, DeviceId from, DeviceId to,
                                        Recorder& recorder) {
  const double duration = problem_.host_time(tensor);
  const bool congested = duration > 0 && problem_.rules().congestion;
  double there = end_[problem_.producer(tensor)];
  if (!problem_.on_host(from)) {
    double& out_end = out_end_[tensor];
    if (out_end == kNotSent) {
      double start = there;
      double& out_free = out_free_[problem_.space(from)];
      if (congested) start = std::max(start, out_free);
      out_end = start + duration;
      if (congested) out_free = out_end;
      recorder.transfer({tensor, Leg::out, from, DeviceId{}, start, out_end});
    }
    there = out_end;
  }
  if (problem_.on_host(to)) return there;
  double start = there;
  double& in_free = in_free_[problem_.space(to)];
  if (congested) start = std::max(start, in_free);
  if (congested) in_free = start + duration;
  recorder.transfer({tensor, Leg::in, DeviceId{}, to, start, start + duration});
  return start + duration;
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
