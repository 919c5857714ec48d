// m-ETF: earliest task first within memory.
//
// Again and again, of all ready ops and devices with memory left, the pair with the earliest start;
// ties by upward rank. Starts hardly ever move forward in time while the schedule grows, so each
// ready op keeps its last known start in a heap and is looked at again only when it comes first: a
// few re-evaluations per op instead of (ready ops x devices) each time.
//
// Without memory limits and with equal devices ETF is within (2 - 1/n) of the optimum without
// communication plus the longest communication chain (Hwang, Chow, Anger, Lee 1989); m-ETF is from
// Jeon et al., Baechi, SoCC 2020.

#include <queue>
#include <tuple>

#include "evaluate/partial_schedule.h"
#include "evaluate/schedule.h"
#include "planners/baselines/baselines.h"
#include "planners/device_choice.h"

namespace placewright {
namespace {

struct Candidate {
  double start = kInfinity;
  double rank = 0;
  OpId op;
  DeviceId device;

  friend bool operator<(const Candidate& a, const Candidate& b) {
    return std::tuple(-a.start, a.rank, b.op) < std::tuple(-b.start, b.rank, a.op);
  }
};

class EarliestTaskFirst {
 public:
  EarliestTaskFirst(const Problem& problem, const Table<OpId, double>& ranks, DeviceChoice& choice)
      : problem_(problem),
        ranks_(ranks),
        choice_(choice),
        schedule_(problem, Gaps::append),
        missing_(problem.op_count()) {}

  std::optional<Plan> run(Control& control) {
    for (const OpId op : problem_.ops()) {
      missing_[op] = problem_.predecessors(op).size();
      if (missing_[op] == 0) ready_.push(evaluate(op));
    }
    while (!ready_.empty()) {
      if (control.should_stop()) return std::nullopt;
      const Candidate current = evaluate(ready_.top().op);
      ready_.pop();
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
  Candidate evaluate(OpId op) {
    const PartialSchedule::Choice choice = schedule_.earliest_start(op, choice_.candidates(op));
    return {choice.slot.start, ranks_[op], op, choice.device};
  }

  void take(const Candidate& candidate) {
    choice_.take(candidate.op, candidate.device);
    schedule_.place(candidate.op, candidate.device);
    for (const OpId successor : problem_.successors(candidate.op)) {
      if (--missing_[successor] == 0) ready_.push(evaluate(successor));
    }
  }

  const Problem& problem_;
  const Table<OpId, double>& ranks_;
  DeviceChoice& choice_;
  PartialSchedule schedule_;
  Table<OpId, std::size_t> missing_;
  std::priority_queue<Candidate> ready_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  const Table<OpId, double> ranks = upward_ranks(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    return EarliestTaskFirst(problem, ranks, choice).run(control);
  });
}

}  // namespace

PlannerEntry etf() {
  return PlannerEntry{.name = "etf",
                      .summary = "the ready op and device with the earliest start (m-ETF)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .plan = plan};
}

}  // namespace placewright
