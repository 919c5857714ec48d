#include "problem/op_times.h"

#include <algorithm>

namespace placewright {
namespace {

OpTimes times_in_calls(const Problem& problem, const Plan& plan) {
  Table<OpId, const Call*> call_of(problem.op_count(), nullptr);
  for (const Call& call : plan.calls) {
    for (const OpId op : call.ops) call_of[op] = &call;
  }
  OpTimes times{Table<OpId, double>(problem.op_count(), 0),
                Table<OpId, double>(problem.op_count(), 0)};
  // A call ends when its plan says so, so the order of ops within the graph is enough.
  for (const OpId op : problem.topological_order()) {
    if (call_of[op] != nullptr) {
      times.start[op] = call_of[op]->start;
      times.end[op] = call_of[op]->end;
      continue;
    }
    for (const OpId before : problem.predecessors(op)) {
      times.start[op] = std::max(times.start[op], times.end[before]);
    }
    times.end[op] = times.start[op] + problem.time(op, plan.placement[op]);
  }
  return times;
}

}  // namespace

OpTimes op_times(const Problem& problem, const Plan& plan) {
  if (plan.schedule) return {plan.schedule->start, plan.schedule->end};
  if (record_of(problem.objective()).form == PlanForm::calls) return times_in_calls(problem, plan);
  const Table<OpId, double> none(problem.op_count(), 0);
  return {none, none};
}

}  // namespace placewright
