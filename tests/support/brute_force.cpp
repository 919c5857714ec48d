#include "support/brute_force.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "evaluate/activities.h"
#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"
#include "verify/verifier.h"

namespace placewright::testing {
namespace {

void extend(const Problem& problem, std::size_t group_index, Placement& placement,
            MemoryLedger& ledger, const std::function<void(const Placement&)>& visit) {
  if (group_index == problem.group_count()) {
    visit(placement);
    return;
  }
  const GroupId group{group_index};
  for (const DeviceId device : problem.devices()) {
    if (!problem.group_allowed(group, device) || !ledger.fits_group(group, device)) continue;
    ledger.add_group(group, device);
    for (const OpId op : problem.group_ops(group)) placement[op] = device;
    extend(problem, group_index + 1, placement, ledger, visit);
    ledger.remove_group(group, device);
  }
}

// Every active schedule of a placement, its activities taken in the order of their starts.
//
// In an active schedule nothing can start earlier while the rest stays. Such a schedule S is found
// when each activity is put where it fits first beside those that S starts before it: if j fitted
// at t before its start s, then in S it could be moved there too. Before s only activities that
// start before it run, beside which it fits; from s on it needs what it has in S. So
//
//   * the starts never decrease along the way; of equal starts the smaller number comes first;
//   * nothing starts when another activity, ready and not yet taken, could have ended.
//
// What occupies nothing delays others through precedence alone, and is taken when it is ready.
class ActiveSchedules {
 public:
  ActiveSchedules(const Problem& problem, const Placement& placement, double stop_at)
      : problem_(problem),
        placement_(placement),
        network_(problem, placement),
        best_(stop_at),
        predecessors_(network_.size()) {
    Table<ActivityId, std::uint32_t> missing = network_.predecessor_count;
    for (std::size_t i = 0; i < network_.size(); ++i) {
      if (missing[ActivityId{i}] == 0) order_.emplace_back(i);
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (const ActivityId next : network_.successors[order_[i]]) {
        predecessors_[next].push_back(order_[i]);
        if (--missing[next] == 0) order_.push_back(next);
      }
    }
  }

  double least() {
    State state;
    state.start.assign(network_.size(), 0);
    state.end.assign(network_.size(), 0);
    state.taken.assign(network_.size(), 0);
    search(std::move(state));
    return best_;
  }

 private:
  struct State {
    Table<ActivityId, double> start;
    Table<ActivityId, double> end;
    Table<ActivityId, char> taken;
    std::vector<ActivityId> running;  // those taken that occupy something
  };

  [[nodiscard]] bool occupies(ActivityId id) const {
    return network_.duration[id] > 0 && (network_.is_op(id) || problem_.rules().congestion);
  }

  [[nodiscard]] bool is_ready(const State& state, ActivityId id) const {
    return !state.taken[id] && std::ranges::all_of(predecessors_[id], [&](ActivityId before) {
      return state.taken[before];
    });
  }

  [[nodiscard]] double ready_at(const State& state, ActivityId id) const {
    double time = 0;
    if (network_.is_op(id)) {
      time = problem_.model(problem_.op(network_.op(id)).model).arrival;
    }
    for (const ActivityId before : predecessors_[id]) time = std::max(time, state.end[before]);
    return time;
  }

  [[nodiscard]] DeviceId device_of(ActivityId id) const { return placement_[network_.op(id)]; }

  [[nodiscard]] double demand(ActivityId id, ResourceId resource) const {
    const DeviceId device = device_of(id);
    double sum = 0;
    for (const ResourceUse& use : problem_.uses(device)) {
      if (use.resource == resource) sum += use.amount * problem_.share(network_.op(id), device);
    }
    return sum;
  }

  [[nodiscard]] bool share_a_port(ActivityId a, ActivityId b) const {
    const Transfer& x = network_.transfer(a);
    const Transfer& y = network_.transfer(b);
    const bool out = x.leg != Leg::in && y.leg != Leg::in && problem_.same_space(x.from, y.from);
    const bool in = x.leg != Leg::out && y.leg != Leg::out && problem_.same_space(x.to, y.to);
    return out || in;
  }

  // Beside what runs at that moment.
  [[nodiscard]] bool fits_at(const State& state, ActivityId id, double time) const {
    std::vector<ActivityId> beside;
    for (const ActivityId other : state.running) {
      if (network_.is_op(other) != network_.is_op(id)) continue;
      if (state.start[other] <= time && time < state.end[other]) beside.push_back(other);
    }
    if (!network_.is_op(id)) {
      return std::ranges::none_of(beside,
                                  [&](ActivityId other) { return share_a_port(id, other); });
    }
    const auto mates = std::ranges::count_if(
        beside, [&](ActivityId other) { return device_of(other) == device_of(id); });
    if (mates >= problem_.device(device_of(id)).lanes) return false;
    return std::ranges::all_of(problem_.uses(device_of(id)), [&](const ResourceUse& use) {
      double sum = demand(id, use.resource);
      for (const ActivityId other : beside) sum += demand(other, use.resource);
      return sum <= problem_.resource(use.resource).capacity * (1 + 1e-9);
    });
  }

  [[nodiscard]] bool fits_from(const State& state, ActivityId id, double time) const {
    const double end = time + network_.duration[id];
    return fits_at(state, id, time) && std::ranges::all_of(state.running, [&](ActivityId other) {
             const double moment = state.start[other];
             return moment <= time || moment >= end || fits_at(state, id, moment);
           });
  }

  // Something fits first when it is ready or when something ends.
  [[nodiscard]] double earliest(const State& state, ActivityId id) const {
    const double ready = ready_at(state, id);
    if (fits_from(state, id, ready)) return ready;
    double first = kInfinity;
    for (const ActivityId other : state.running) {
      const double time = state.end[other];
      if (time > ready && time < first && fits_from(state, id, time)) first = time;
    }
    return first;
  }

  void take(State& state, ActivityId id, double start) const {
    state.start[id] = start;
    state.end[id] = start + network_.duration[id];
    state.taken[id] = 1;
    if (occupies(id)) state.running.push_back(id);
  }

  void take_what_occupies_nothing(State& state) const {
    for (const ActivityId id : order_) {
      if (!occupies(id) && is_ready(state, id)) take(state, id, ready_at(state, id));
    }
  }

  // If nothing that is still to come had to wait for anything but its inputs.
  [[nodiscard]] double bound(State state) const {
    const double now = state.running.empty() ? 0 : state.start[state.running.back()];
    for (const ActivityId id : order_) {
      if (state.taken[id]) continue;
      const double ready = ready_at(state, id);
      state.end[id] = (occupies(id) ? std::max(now, ready) : ready) + network_.duration[id];
    }
    Table<OpId, double> end(problem_.op_count());
    for (const OpId op : problem_.ops()) end[op] = state.end[network_.of(op)];
    return schedule_value(problem_, end);
  }

  void search(State state) {
    take_what_occupies_nothing(state);
    const double value = bound(state);
    if (value >= best_) return;
    std::vector<std::pair<double, ActivityId>> candidates;
    double first_end = kInfinity;
    for (const ActivityId id : order_) {
      if (!is_ready(state, id)) continue;
      candidates.emplace_back(earliest(state, id), id);
      first_end = std::min(first_end, candidates.back().first + network_.duration[id]);
    }
    if (candidates.empty()) {
      best_ = value;
      return;
    }
    const ActivityId last = state.running.empty() ? ActivityId{} : state.running.back();
    std::ranges::sort(candidates);
    for (const auto& [start, id] : candidates) {
      const bool in_order =
          !last.valid() || std::pair(state.start[last], last) < std::pair(start, id);
      if (!in_order || start >= first_end) continue;
      State next = state;
      take(next, id, start);
      search(std::move(next));
    }
  }

  const Problem& problem_;
  const Placement& placement_;
  ActivityNetwork network_;
  double best_;
  Table<ActivityId, std::vector<ActivityId>> predecessors_;
  std::vector<ActivityId> order_;  // topological
};

// The least value of a placement's stages, each of the devices without one helping none of them or
// any, as the verifier allows.
class StageReplicas {
 public:
  StageReplicas(const Problem& problem, const Placement& placement, double stop_at)
      : problem_(problem), stages_(stages_of(problem, placement)), best_(stop_at) {}

  double least() {
    extend(0);
    return best_;
  }

 private:
  void extend(std::size_t device) {
    if (device == problem_.device_count() || problem_.rules().max_replicas == 1) {
      const Plan plan = pipeline_plan_below(problem_, stages_, best_);
      if (plan.value < best_ && verify(problem_, plan).empty()) best_ = plan.value;
      return;
    }
    extend(device + 1);
    const auto is_first = [&](const Stage& stage) {
      return stage.devices.front() == DeviceId{device};
    };
    if (std::ranges::any_of(stages_, is_first)) return;
    for (Stage& stage : stages_) {
      stage.devices.push_back(DeviceId{device});
      extend(device + 1);
      stage.devices.pop_back();
    }
  }

  const Problem& problem_;
  std::vector<Stage> stages_;
  double best_;
};

bool links_exist(const Problem& problem, const Placement& placement) {
  for (const TensorId tensor : problem.tensors()) {
    for (const OpId consumer : problem.consumers(tensor)) {
      if (!problem.reachable(tensor, placement[problem.producer(tensor)], placement[consumer])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

void for_each_placement(const Problem& problem,
                        const std::function<void(const Placement&)>& visit) {
  Placement placement(problem.op_count());
  MemoryLedger ledger(problem);
  extend(problem, 0, placement, ledger, visit);
}

double brute_force_schedule_value(const Problem& problem, const Placement& placement,
                                  double stop_at) {
  return ActiveSchedules(problem, placement, stop_at).least();
}

std::optional<double> brute_force_value(const Problem& problem) {
  double best = kInfinity;
  for_each_placement(problem, [&](const Placement& placement) {
    if (!links_exist(problem, placement)) return;
    if (problem.objective() == Objective::throughput) {
      if (contiguous(problem, placement)) best = StageReplicas(problem, placement, best).least();
    } else {
      best = std::min(best, brute_force_schedule_value(problem, placement, best));
    }
  });
  if (best == kInfinity) return std::nullopt;
  return best;
}

}  // namespace placewright::testing
