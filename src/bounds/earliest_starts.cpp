#include "bounds/earliest_starts.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "problem/move_time.h"

namespace placewright {
namespace {

// Of a start: what comes later by less is in time.
constexpr double kInTime = 1e-9;
// How often one start is raised.
constexpr int kMostRaises = 60;
constexpr std::size_t kOpsBetweenStops = 8;

}  // namespace

double least_lateness(std::vector<MachineJob>& jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const MachineJob& a, const MachineJob& b) { return a.release < b.release; });
  struct Waiting {
    double deadline;
    double left;
    bool operator<(const Waiting& other) const { return deadline > other.deadline; }
  };
  std::priority_queue<Waiting> waiting;
  double now = 0;
  double latest = -kInfinity;
  for (std::size_t next = 0; next < jobs.size() || !waiting.empty();) {
    if (waiting.empty()) now = std::max(now, jobs[next].release);
    while (next < jobs.size() && jobs[next].release <= now) {
      waiting.push({jobs[next].deadline, jobs[next].length});
      ++next;
    }
    Waiting first = waiting.top();
    waiting.pop();
    const double until = next < jobs.size() ? jobs[next].release : kInfinity;
    if (now + first.left > until) {
      first.left -= until - now;
      now = until;
      waiting.push(first);
      continue;
    }
    now += first.left;
    latest = std::max(latest, now - first.deadline);
  }
  return latest;
}

EarliestStarts::EarliestStarts(const Problem& problem, Direction direction)
    : problem_(problem),
      direction_(direction),
      devices_(problem.device_count()),
      order_(problem.topological_order().begin(), problem.topological_order().end()),
      rank_(problem.op_count()),
      inputs_(problem.op_count()),
      elsewhere_(problem.op_count()),
      start_(problem.op_count() * devices_),
      deadline_(problem.op_count(), kInfinity) {
  if (direction == Direction::backward) std::reverse(order_.begin(), order_.end());
  for (std::size_t i = 0; i < order_.size(); ++i) rank_[order_[i].index()] = i;
  std::size_t edge = 0;
  for (const TensorId tensor : problem.tensors()) {
    const OpId producer = problem.producer(tensor);
    for (const OpId reader : problem.consumers(tensor)) {
      if (direction == Direction::forward) {
        inputs_[reader.index()].push_back({producer, tensor, edge++});
      } else {
        inputs_[producer.index()].push_back({reader, tensor, edge++});
      }
    }
  }
}

double EarliestStarts::move(TensorId tensor, DeviceId from, DeviceId to) const {
  return direction_ == Direction::forward ? move_time(problem_, tensor, from, to)
                                          : move_time(problem_, tensor, to, from);
}

bool EarliestStarts::compute(const Surroundings& around, const std::function<bool()>& stop) {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (i % kOpsBetweenStops == 0 && stop()) return false;
    const OpId op = order_[i];
    prepare_arrivals(op, around);
    for (const DeviceId device : problem_.devices()) {
      const DeviceId like = around.like[device.index()];
      double start = like == device ? kInfinity : start_[at(op, like)];
      if (like == device && around.may(op, device)) start = start_by_paths(op, device, around);
      if (like == device && start < kInfinity) start = raised(op, device, start, around);
      start_[at(op, device)] = start;
    }
  }
  return true;
}

// For each input and device, when the tensor is there if it comes from anywhere else.
void EarliestStarts::prepare_arrivals(OpId op, const Surroundings& around) {
  const std::vector<Arc>& inputs = inputs_[op.index()];
  std::vector<double>& elsewhere = elsewhere_[op.index()];
  elsewhere.assign(inputs.size() * devices_, kInfinity);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const OpId from = inputs[i].from;
    if (around.together[from.index()] == around.together[op.index()]) continue;
    for (const DeviceId to : problem_.devices()) {
      double& earliest = elsewhere[i * devices_ + to.index()];
      if (!around.may(op, to) || around.like[to.index()] != to) continue;
      for (const DeviceId device : problem_.devices()) {
        const double end = device == to ? kInfinity : this->end(from, device);
        if (end >= earliest) continue;
        earliest = std::min(earliest, end + move(inputs[i].tensor, device, to));
      }
    }
  }
}

double EarliestStarts::start_by_paths(OpId op, DeviceId device, const Surroundings& around) const {
  const std::vector<Arc>& inputs = inputs_[op.index()];
  double start =
      direction_ == Direction::forward ? problem_.model(problem_.op(op).model).arrival : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double there = around.apart[inputs[i].edge] ? kInfinity : end(inputs[i].from, device);
    start = std::max(start, std::min(there, elsewhere_[op.index()][i * devices_ + device.index()]));
  }
  return start;
}

// The first moment at which nothing speaks against it any more, or an earlier one.
double EarliestStarts::raised(OpId op, DeviceId device, double start, const Surroundings& around) {
  for (int i = 0; i < kMostRaises && start < kInfinity; ++i) {
    const double later = gather(op, device, start, around);
    if (later <= 0) break;
    start += later;
  }
  return start;
}

// By how much the op must start later than `start` at least: until the ops that are forced onto the
// device are in time, or another set of them is forced.
double EarliestStarts::gather(OpId op, DeviceId device, double start, const Surroundings& around) {
  const double in_time = kInTime * start;
  double until_change = kInfinity;
  bool torn = false;  // some op is forced onto the device, and may not be there
  const auto look_at = [&](OpId reader, double needed) {
    const std::vector<Arc>& inputs = inputs_[reader.index()];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double arrives = elsewhere_[reader.index()][i * devices_ + device.index()];
      if (arrives <= needed + in_time) continue;
      until_change = std::min(until_change, arrives - needed);
      torn = torn || around.apart[inputs[i].edge];
      double& deadline = deadline_[inputs[i].from.index()];
      if (deadline == kInfinity) {
        forced_.push_back(rank_[inputs[i].from.index()]);
        std::push_heap(forced_.begin(), forced_.end());
      }
      deadline = std::min(deadline, needed);
    }
  };
  look_at(op, start);
  while (!forced_.empty()) {
    std::pop_heap(forced_.begin(), forced_.end());
    const OpId next = order_[forced_.back()];
    forced_.pop_back();
    taken_.push_back(next);
    look_at(next, deadline_[next.index()] - problem_.time(next, device));
  }
  for (const OpId taken : taken_) {
    jobs_.push_back({this->start(taken, device), problem_.time(taken, device),
                     std::exchange(deadline_[taken.index()], kInfinity)});
  }
  taken_.clear();
  const double late = torn ? kInfinity : jobs_.empty() ? 0 : least_lateness(jobs_);
  jobs_.clear();
  return late > in_time ? std::min(late, until_change) : 0;
}

}  // namespace placewright
