// Every plan in calls of a small problem, one after the other.
//
// calls-exact keeps colocated ops in one call; here each op goes into each call of each device that
// may run it (or onto the host), colocated ops on one device in any of its calls. What ends without
// being stopped has proved the best plan, or that there is none.
//
// Time: O(ops + edges) for each candidate, and (calls of all accelerators + 1)^ops candidates;
// refused where that is more than kMostCandidates. Memory: O(ops + edges).

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "evaluate/calls.h"
#include "evaluate/memory.h"
#include "planners/calls/calls.h"

namespace placewright {
namespace {

constexpr double kMostCandidates = 100'000;

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
        control_(control),
        evaluator_(problem, most_calls(problem)),
        ledger_(problem),
        slots_(problem.op_count(), CallEvaluator::kHostSlot),
        home_(problem.group_count()) {
    if (control.start != nullptr) best_ = *control.start;
  }

  Answer run() {
    place(0);
    Answer answer;
    if (stopped_) {
      answer.reason = control_.stop_reason();
    } else if (best_) {
      answer.certificate = {best_->value, "every plan in calls looked at"};
    } else {
      answer.proved_infeasible = true;
      answer.reason = "every assignment to calls was tried, and none keeps all rules";
    }
    answer.plan = std::move(best_);
    return answer;
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
      for (int call = 0; call < calls_of(problem_, device) && !stopped_; ++call) {
        slots_[next] = evaluator_.slot(device, call);
        place(next + 1);
      }
      ledger_.remove(op, device);
      if (first_of_group) home = DeviceId{};
      if (!first_of_group || stopped_) return;
    }
  }

  void offer() {
    stopped_ = control_.should_stop(1);
    if (evaluator_.latency(slots_) >= (best_ ? best_->value : kInfinity)) return;
    best_ = evaluator_.plan(slots_);
    control_.report(*best_, 0);
  }

  const Problem& problem_;
  Control& control_;
  CallEvaluator evaluator_;
  MemoryLedger ledger_;
  std::vector<CallEvaluator::Slot> slots_;
  Table<GroupId, DeviceId> home_;  // of the groups that have an op placed
  std::optional<Plan> best_;
  bool stopped_ = false;
};

}  // namespace

PlannerEntry exhaustive_calls() {
  return PlannerEntry{
      .name = "exhaustive",
      .summary = "tries every plan of a small problem, under any rules",
      .objectives = {Objective::call_latency},
      .strength = Strength::exact,
      .refuses = [](const Problem& problem) -> std::string {
        return candidate_count(problem) > kMostCandidates ? "it has too many plans to try them all"
                                                          : "";
      },
      .plan = [](const Problem& problem, const Settings&,
                 Control& control) { return CallEnumeration(problem, control).run(); }};
}

}  // namespace placewright
