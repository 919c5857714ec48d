#include "planning/tie_breaking.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "evaluate/schedule.h"
#include "planning/checked_plan.h"
#include "verify/verifier.h"

namespace placewright {
namespace {

// Moves tried times ops: 50 moves of 1000 ops.
constexpr std::size_t kMostWork = 50'000;
constexpr std::size_t kFewestMoves = 8;
// Planners that go on improving leave no time: then it may take this share of the limit beyond it.
constexpr double kOverTime = 0.02;
constexpr double kChecksOfMove = 2;  // the plan is timed, and checked

class TieBreaking {
 public:
  TieBreaking(const Problem& problem, Plan plan, const Control& control)
      : problem_(problem),
        plan_(std::move(plan)),
        control_(control),
        until_(std::min(0.0, control.remaining() - kOverTime * control.budget().seconds) +
               kChecksOfMove * seconds_to_check(problem)),
        moves_left_(
            std::max(kFewestMoves, kMostWork / std::max<std::size_t>(problem.op_count(), 1))) {}

  Plan run() {
    empty_devices();
    join_islands();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> ops_by_device() const {
    std::vector<std::size_t> count(problem_.device_count(), 0);
    for (const OpId op : problem_.ops()) ++count[plan_.placement[op].index()];
    return count;
  }

  void empty_devices() {
    const std::vector<std::size_t> count = ops_by_device();
    std::vector<DeviceId> used;
    for (const DeviceId device : problem_.devices()) {
      if (count[device.index()] > 0) used.push_back(device);
    }
    std::ranges::stable_sort(used, {}, [&](DeviceId device) { return count[device.index()]; });
    for (std::size_t i = 0; i + 1 < used.size(); ++i) {
      std::vector<OpId> ops;
      for (const OpId op : problem_.ops()) {
        if (plan_.placement[op] == used[i]) ops.push_back(op);
      }
      // The busiest device first: it is there in any case.
      for (std::size_t j = used.size(); j-- > i + 1;) {
        if (move(ops, used[j])) break;
      }
    }
  }

  // The only other device that a group exchanges tensors with; nullopt if it is none or several.
  [[nodiscard]] std::optional<DeviceId> surroundings(GroupId group) const {
    std::optional<DeviceId> around;
    const auto agrees = [&](OpId neighbour) {
      if (problem_.group(neighbour) == group) return true;
      const DeviceId device = plan_.placement[neighbour];
      if (!around) around = device;
      return *around == device;
    };
    for (const OpId op : problem_.group_ops(group)) {
      for (const TensorId tensor : problem_.inputs(op)) {
        if (!agrees(problem_.producer(tensor))) return std::nullopt;
      }
      for (const TensorId tensor : problem_.outputs(op)) {
        if (!std::ranges::all_of(problem_.consumers(tensor), agrees)) return std::nullopt;
      }
    }
    return around;
  }

  void join_islands() {
    for (const GroupId group : problem_.groups()) {
      const std::span<const OpId> ops = problem_.group_ops(group);
      const std::optional<DeviceId> around = surroundings(group);
      if (around && *around != plan_.placement[ops.front()]) move(ops, *around);
    }
  }

  // Keeps the move if the plan is not worse for it.
  bool move(std::span<const OpId> ops, DeviceId device) {
    const auto allowed = [&](OpId op) { return problem_.allowed(op, device); };
    if (moves_left_ == 0 || !std::ranges::all_of(ops, allowed)) return false;
    if (control_.remaining() < until_) return false;
    --moves_left_;
    Placement placement = plan_.placement;
    for (const OpId op : ops) placement[op] = device;
    Schedule schedule = retime(problem_, placement, *plan_.schedule);
    Plan moved = schedule_plan(problem_, std::move(placement), std::move(schedule));
    if (!(moved.value <= plan_.value) || !verify(problem_, moved).empty()) return false;
    plan_ = std::move(moved);
    return true;
  }

  const Problem& problem_;
  Plan plan_;
  const Control& control_;
  double until_;  // what must be left for a move
  std::size_t moves_left_;
};

}  // namespace

Plan with_fewer_devices_and_transfers(const Problem& problem, Plan plan, const Control& control) {
  if (!plan.schedule) return plan;
  return TieBreaking(problem, std::move(plan), control).run();
}

}  // namespace placewright
