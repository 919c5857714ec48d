#include "evaluate/serial_schedule.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "evaluate/schedule.h"

namespace placewright {
namespace {

// By how much the tensors held would grow if the op came next.
double growth(const Problem& problem, OpId op, const Table<TensorId, std::size_t>& unread) {
  double bytes = 0;
  for (const TensorId output : problem.outputs(op)) bytes += problem.tensor(output).bytes;
  for (const TensorId input : problem.inputs(op)) {
    if (unread[input] == 1) bytes -= problem.tensor(input).bytes;
  }
  return bytes;
}

std::vector<OpId> thrifty_order(const Problem& problem) {
  Table<TensorId, std::size_t> unread(problem.tensor_count());
  for (const TensorId tensor : problem.tensors()) {
    unread[tensor] = problem.consumers(tensor).size();
  }
  Table<OpId, std::size_t> missing(problem.op_count());
  std::set<std::tuple<double, std::size_t, OpId>> ready;
  const auto offer = [&](OpId op) {
    ready.emplace(growth(problem, op, unread), problem.topological_rank(op), op);
  };
  for (const OpId op : problem.ops()) {
    missing[op] = problem.predecessors(op).size();
    if (missing[op] == 0) offer(op);
  }
  std::vector<OpId> order;
  order.reserve(problem.op_count());
  while (!ready.empty()) {
    const OpId op = std::get<2>(*ready.begin());
    ready.erase(ready.begin());
    order.push_back(op);
    for (const TensorId input : problem.inputs(op)) --unread[input];
    for (const OpId successor : problem.successors(op)) {
      if (--missing[successor] == 0) offer(successor);
    }
  }
  return order;
}

class SerialRun {
 public:
  SerialRun(const Problem& problem, const Placement& placement)
      : problem_(problem),
        placement_(placement),
        durations_(op_durations(problem, placement)),
        there_(problem.tensor_count()) {
    schedule_.start.assign(problem.op_count(), 0);
    schedule_.end.assign(problem.op_count(), 0);
  }

  Schedule run() {
    for (const OpId op : thrifty_order(problem_)) {
      now_ = std::max(now_, released(problem_, op));
      for (const TensorId input : problem_.inputs(op)) bring(input, placement_[op]);
      schedule_.start[op] = now_;
      schedule_.end[op] = now_ += durations_[op];
    }
    return std::move(schedule_);
  }

 private:
  void bring(TensorId tensor, DeviceId to) {
    const DeviceId from = placement_[problem_.producer(tensor)];
    if (problem_.same_space(from, to)) return;
    if (problem_.has_shared_spaces()) {
      to = receiving_device(problem_, placement_, tensor, problem_.space(to));
    }
    (void)along_route(problem_, tensor, from, to, now_, [&](const Hop& hop, double) {
      move(tensor, hop);
      return now_;
    });
  }

  // Unless it has been moved there before; host memory stands as the device that is not valid.
  void move(TensorId tensor, const Hop& hop) {
    auto& known = there_[tensor];
    if (std::find(known.begin(), known.end(), hop.to) != known.end()) return;
    known.push_back(hop.to);
    schedule_.transfers.push_back({tensor, hop.leg, hop.from, hop.to, now_, now_ + hop.length});
    now_ += hop.length;
  }

  const Problem& problem_;
  const Placement& placement_;
  Table<OpId, double> durations_;
  Table<TensorId, std::vector<DeviceId>> there_;
  Schedule schedule_;
  double now_ = 0;
};

}  // namespace

Plan serial_plan(const Problem& problem, const Placement& placement) {
  return schedule_plan(problem, placement, SerialRun(problem, placement).run());
}

}  // namespace placewright
