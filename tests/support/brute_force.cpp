#include "support/brute_force.h"

#include <algorithm>
#include <vector>

#include "evaluate/activities.h"
#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/schedule.h"

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

class ActiveSchedules {
 public:
  ActiveSchedules(const Problem& problem, const Placement& placement, double stop_at)
      : problem_(problem),
        placement_(placement),
        network_(problem, placement),
        best_(stop_at),
        tail_(network_.size(), 0) {
    for (std::size_t i = 0; i < network_.size(); ++i) order_.push_back(ActivityId{i});
    compute_tails();
  }

  double least() {
    State state;
    state.missing = network_.predecessor_count;
    state.ready_at.assign(network_.size(), 0);
    state.end.assign(network_.size(), 0);
    state.done.assign(network_.size(), 0);
    for (const OpId op : problem_.ops()) {
      state.ready_at[network_.of(op)] = problem_.model(problem_.op(op).model).arrival;
    }
    for (const DeviceId device : problem_.devices()) {
      state.lanes.emplace_back(static_cast<std::size_t>(problem_.device(device).lanes), 0.0);
    }
    state.out_free.assign(problem_.device_count(), 0);
    state.in_free.assign(problem_.device_count(), 0);
    state.left = network_.size();
    search(state);
    return best_;
  }

 private:
  struct State {
    Table<ActivityId, std::uint32_t> missing;
    Table<ActivityId, double> ready_at;
    Table<ActivityId, double> end;
    Table<ActivityId, char> done;
    std::vector<std::vector<double>> lanes;
    Table<DeviceId, double> out_free;
    Table<DeviceId, double> in_free;
    std::size_t left = 0;
  };

  void compute_tails() {
    // Longest path behind an activity; the network is acyclic, so repeated relaxation settles.
    for (std::size_t round = 0; round < network_.size(); ++round) {
      for (const ActivityId id : order_) {
        for (const ActivityId next : network_.successors[id]) {
          tail_[id] = std::max(tail_[id], network_.duration[next] + tail_[next]);
        }
      }
    }
  }

  [[nodiscard]] bool occupies(ActivityId id) const {
    return network_.duration[id] > 0 && (network_.is_op(id) || problem_.rules().congestion);
  }

  [[nodiscard]] double earliest(const State& state, ActivityId id) const {
    double start = state.ready_at[id];
    if (!occupies(id)) return start;
    if (network_.is_op(id)) {
      const auto& lanes = state.lanes[placement_[network_.op(id)].index()];
      return std::max(start, *std::min_element(lanes.begin(), lanes.end()));
    }
    const Transfer& transfer = network_.transfer(id);
    if (transfer.leg != Leg::in) start = std::max(start, state.out_free[transfer.from]);
    if (transfer.leg != Leg::out) start = std::max(start, state.in_free[transfer.to]);
    return start;
  }

  [[nodiscard]] bool compete(ActivityId a, ActivityId b) const {
    if (!occupies(a) || !occupies(b) || network_.is_op(a) != network_.is_op(b)) return false;
    if (network_.is_op(a)) return placement_[network_.op(a)] == placement_[network_.op(b)];
    const Transfer& x = network_.transfer(a);
    const Transfer& y = network_.transfer(b);
    const bool out = x.leg != Leg::in && y.leg != Leg::in && x.from == y.from;
    const bool in = x.leg != Leg::out && y.leg != Leg::out && x.to == y.to;
    return out || in;
  }

  void take(State& state, ActivityId id) const {
    const double start = earliest(state, id);
    const double end = start + network_.duration[id];
    if (occupies(id)) {
      if (network_.is_op(id)) {
        auto& lanes = state.lanes[placement_[network_.op(id)].index()];
        *std::min_element(lanes.begin(), lanes.end()) = end;
      } else {
        const Transfer& transfer = network_.transfer(id);
        if (transfer.leg != Leg::in) state.out_free[transfer.from] = end;
        if (transfer.leg != Leg::out) state.in_free[transfer.to] = end;
      }
    }
    state.end[id] = end;
    state.done[id] = 1;
    --state.left;
    for (const ActivityId next : network_.successors[id]) {
      --state.missing[next];
      state.ready_at[next] = std::max(state.ready_at[next], end);
    }
  }

  [[nodiscard]] Table<OpId, double> ends(const State& state) const {
    Table<OpId, double> end(problem_.op_count());
    for (const OpId op : problem_.ops()) end[op] = state.end[network_.of(op)];
    return end;
  }

  // With every op at its earliest end so far; regular objectives only grow.
  [[nodiscard]] double bound(const State& state) const {
    if (problem_.objective() == Objective::latency) {
      double latest = 0;
      for (const ActivityId id : order_) {
        const double end = state.done[id] ? state.end[id]
                           : state.missing[id] == 0
                               ? earliest(state, id) + network_.duration[id] + tail_[id]
                               : 0;
        latest = std::max(latest, end);
      }
      return latest;
    }
    Table<OpId, double> end = ends(state);
    return schedule_value(problem_, end);
  }

  void search(const State& state) {
    if (bound(state) >= best_) return;
    if (state.left == 0) {
      best_ = std::min(best_, schedule_value(problem_, ends(state)));
      return;
    }
    ActivityId first;
    double first_end = kInfinity;
    for (const ActivityId id : order_) {
      if (state.done[id] || state.missing[id] > 0) continue;
      const double end = earliest(state, id) + network_.duration[id];
      if (!first.valid() || end < first_end) {
        first = id;
        first_end = end;
      }
    }
    for (const ActivityId id : order_) {
      if (state.done[id] || state.missing[id] > 0) continue;
      const bool rival = id != first && compete(id, first) && earliest(state, id) < first_end;
      if (id != first && !rival) continue;
      State next = state;
      take(next, id);
      search(next);
    }
  }

  const Problem& problem_;
  const Placement& placement_;
  ActivityNetwork network_;
  double best_;
  Table<ActivityId, double> tail_;
  std::vector<ActivityId> order_;
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
      if (contiguous(problem, placement)) best = std::min(best, pipeline_value(problem, placement));
    } else {
      best = std::min(best, brute_force_schedule_value(problem, placement, best));
    }
  });
  if (best == kInfinity) return std::nullopt;
  return best;
}

}  // namespace placewright::testing
