// Every plan in calls of a small problem, one after the other.
//
// calls-exact keeps colocated ops in one call; here each op goes into each call of each device that
// may run it (or onto the host), colocated ops on one device in any of its calls.
//
// Time: O(ops + edges) for each candidate, and (calls of all accelerators + 1)^ops candidates.
// Memory: O(ops + edges).

#include "planners/methods/exhaustive.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/calls.h"
#include "evaluate/memory.h"
#include "planners/calls/calls.h"

namespace placewright {
namespace {

// More calls than ops are empty.
int most_calls(const Problem& problem) {
  return static_cast<int>(
      std::min(static_cast<std::size_t>(problem.rules().calls_per_device), problem.op_count()));
}

int calls_of(const Problem& problem, DeviceId device) {
  return problem.on_host(device) ? 1 : most_calls(problem);
}

double candidate_count(const Problem& problem) {
  double count = 1;
  for (const OpId op : problem.ops()) {
    double choices = 0;
    for (const DeviceId device : problem.devices()) {
      if (problem.allowed(op, device)) choices += calls_of(problem, device);
    }
    count *= choices;
  }
  return count;
}

class CallEnumeration {
 public:
  CallEnumeration(const Problem& problem, Control& control)
      : problem_(problem),
        enumeration_(control),
        evaluator_(problem, most_calls(problem)),
        ledger_(problem),
        slots_(problem.op_count(), CallEvaluator::kHostSlot),
        home_(problem.group_count()) {}

  Answer run() {
    place(0);
    return std::move(enumeration_).answer("plan in calls");
  }

 private:
  void place(std::size_t next) {
    if (next == problem_.op_count()) {
      offer();
      return;
    }
    const OpId op{next};
    DeviceId& home = home_[problem_.group(op)];
    const bool first_of_group = !home.valid();
    for (const DeviceId device : problem_.devices()) {
      if (!problem_.allowed(op, device) || (!first_of_group && device != home)) continue;
      if (!ledger_.fits(op, device)) continue;
      home = device;
      ledger_.add(op, device);
      for (int call = 0; call < calls_of(problem_, device) && !enumeration_.stopped(); ++call) {
        slots_[next] = evaluator_.slot(device, call);
        place(next + 1);
      }
      ledger_.remove(op, device);
      if (first_of_group) home = DeviceId{};
      if (!first_of_group || enumeration_.stopped()) return;
    }
  }

  void offer() {
    enumeration_.count();
    if (evaluator_.latency(slots_) < enumeration_.value())
      enumeration_.take(*evaluator_.plan(slots_));
  }

  const Problem& problem_;
  Enumeration enumeration_;
  CallEvaluator evaluator_;
  MemoryLedger ledger_;
  std::vector<CallEvaluator::Slot> slots_;
  Table<GroupId, DeviceId> home_;  // of the groups that have an op placed
};

}  // namespace

PlannerEntry exhaustive_calls() {
  return exhaustive<CallEnumeration>(Objective::call_latency, candidate_count);
}

}  // namespace placewright
