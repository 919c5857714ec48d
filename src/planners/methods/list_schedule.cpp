#include "planners/methods/list_schedule.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <vector>

#include "evaluate/partial_schedule.h"

namespace placewright {
namespace {

struct Candidate {
  double start = kInfinity;
  double rank = 0;
  OpId op;
  DeviceId device;

  // The heap's top is the largest: early start, then high rank, then low number.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tuple(-a.start, a.rank, b.op) < std::tuple(-b.start, b.rank, a.op);
  }
};

class ListScheduler {
 public:
  ListScheduler(const Problem& problem, const Table<OpId, double>& ranks, DeviceChoice& choice,
                StartRule* rule)
      : problem_(problem),
        ranks_(ranks),
        choice_(choice),
        rule_(rule),
        schedule_(problem, Gaps::append),
        missing_(problem.op_count()),
        inputs_(problem.op_count()) {}

  std::optional<Plan> run(Control& control) {
    for (const OpId op : problem_.ops()) {
      missing_[op] = problem_.predecessors(op).size();
      if (missing_[op] == 0) offer(op);
    }
    while (!ready_.empty()) {
      if (control.should_stop()) return std::nullopt;
      const Candidate top = ready_.top();
      ready_.pop();
      if (const double bound = start_bound(top.op); bound > top.start) {
        ready_.push({bound, top.rank, top.op, DeviceId{}});
        continue;
      }
      const Candidate current = evaluate(top.op);
      if (!ready_.empty() && current < ready_.top()) {
        ready_.push(current);
        continue;
      }
      if (!current.device.valid()) return std::nullopt;
      take(current);
    }
    return schedule_.finish();
  }

 private:
  void offer(OpId op) {
    for (const DeviceId device : problem_.devices()) {
      const bool runs = problem_.time(op, device) < kUnsupported;
      inputs_[op].push_back(runs ? schedule_.inputs_bound(op, device) : kInfinity);
    }
    ready_.push(evaluate(op));
  }

  // A few look-ups. While many ops wait for few devices, most that come first in the heap are put
  // off by it without a probe.
  [[nodiscard]] double start_bound(OpId op) const {
    double bound = kInfinity;
    for (const DeviceId device : problem_.devices()) {
      double start = inputs_[op][device.index()];
      if (problem_.time(op, device) > 0) start = std::max(start, schedule_.device_free(device));
      bound = std::min(bound, start);
    }
    return bound;
  }

  Candidate evaluate(OpId op) {
    const auto devices = choice_.candidates(op);
    Candidate best{kInfinity, ranks_[op], op, DeviceId{}};
    if (rule_ != nullptr) best = earliest_ruled(op, devices);
    if (best.device.valid()) return best;
    const PartialSchedule::Choice any = schedule_.earliest_start(op, devices, inputs_[op]);
    return {any.slot.start, ranks_[op], op, any.device};
  }

  Candidate earliest_ruled(OpId op, std::span<const DeviceId> devices) {
    Candidate best{kInfinity, ranks_[op], op, DeviceId{}};
    double best_end = kInfinity;
    for (const DeviceId device : devices) {
      if (schedule_.start_bound(op, device) > best.start) continue;
      const PartialSchedule::Slot slot = schedule_.probe(op, device);
      const double start = rule_->allowed_start(op, device, slot.start);
      if (std::tuple(start, slot.end) >= std::tuple(best.start, best_end)) continue;
      best.start = start;
      best.device = device;
      best_end = slot.end;
    }
    return best;
  }

  void take(const Candidate& candidate) {
    choice_.take(candidate.op, candidate.device);
    schedule_.place(candidate.op, candidate.device);
    inputs_[candidate.op] = {};
    if (rule_ != nullptr) {
      rule_->placed(candidate.op, candidate.device, schedule_.end(candidate.op));
    }
    for (const OpId successor : problem_.successors(candidate.op)) {
      if (--missing_[successor] == 0) offer(successor);
    }
  }

  const Problem& problem_;
  const Table<OpId, double>& ranks_;
  DeviceChoice& choice_;
  StartRule* rule_;  // null: none
  PartialSchedule schedule_;
  Table<OpId, std::size_t> missing_;
  Table<OpId, std::vector<double>> inputs_;  // of ready ops, by device: not there earlier
  std::priority_queue<Candidate> ready_;
};

}  // namespace

std::optional<Plan> earliest_end_plan(const Problem& problem, std::span<const OpId> order,
                                      DeviceChoice& choice, Control& control,
                                      const TimeBehind& behind) {
  PartialSchedule schedule(problem, Gaps::insert);
  for (const OpId op : order) {
    if (control.should_stop()) return std::nullopt;
    const std::span<const double> rest = behind ? behind(op) : std::span<const double>{};
    const DeviceId device = schedule.earliest_end(op, choice.candidates(op), rest);
    if (!device.valid()) return std::nullopt;
    choice.take(op, device);
    schedule.place(op, device);
  }
  return schedule.finish();
}

std::optional<Plan> earliest_start_plan(const Problem& problem, const Table<OpId, double>& ranks,
                                        DeviceChoice& choice, Control& control) {
  return ListScheduler(problem, ranks, choice, nullptr).run(control);
}

std::optional<Plan> earliest_start_plan(const Problem& problem, const Table<OpId, double>& ranks,
                                        DeviceChoice& choice, StartRule& rule, Control& control) {
  return ListScheduler(problem, ranks, choice, &rule).run(control);
}

}  // namespace placewright
