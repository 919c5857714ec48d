// What moving one op to another device would cost, and what holds it where it is.
//
// The op moves with its colocation group. The moved placement is evaluated in full, not estimated:
// the plan that results is handed out, so anybody can check its value. For a schedule it is the
// better of two: the plan's own order of ops and transfers with the earliest times, and the list
// schedule that stands for the bare placement (carried_plan.h). O(devices x (ops + tensors) log).

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem/plan.h"
#include "problem/problem.h"
#include "problem/spelling.h"

namespace placewright {

enum class Obstacle { none, pin, support, memory, link, contiguity, calls, other };
template <>
inline constexpr auto kSpellings<Obstacle> = std::to_array<Spelling<Obstacle>>({
    {Obstacle::none, "none"},
    {Obstacle::pin, "pin", "it, or an op colocated with it, is pinned"},
    {Obstacle::support, "support", "the device cannot run it, or an op colocated with it"},
    {Obstacle::memory, "memory", "it does not fit there"},
    {Obstacle::link, "link", "a tensor cannot get there, or from there"},
    {Obstacle::contiguity, "contiguity", "the stages would wait for each other in a circle"},
    {Obstacle::calls, "calls", "too many calls, or calls that wait for each other"},
    {Obstacle::other, "other"},
});

struct OpMove {
  DeviceId device;
  Obstacle obstacle = Obstacle::none;
  std::string reason = {};        // why it is not allowed, in one sentence
  std::optional<Plan> plan = {};  // after the move, also where only memory forbids it
  double compute_change = 0;      // the group's time there less its time here
  double transfer_change = 0;     // of all transfers together, overheads included

  [[nodiscard]] double value() const { return plan ? plan->value : kInfinity; }
};

// One for each device other than the op's own.
std::vector<OpMove> moves_of_op(const Problem& problem, const Plan& plan, OpId op);

// What keeps the op on its device, one sentence each; empty: every move is allowed and none is
// worse.
std::vector<std::string> holds_of_op(const Problem& problem, const Plan& plan, OpId op,
                                     const std::vector<OpMove>& moves);

}  // namespace placewright
