// GETF: generalised earliest time first. A linear program gives each op a group of similar devices,
// ETF a device in it.
//
// Devices are grouped by speed (mean over ops), a group for each power of two. With x[v,k] the
// share of op v in group k,
//
//   minimise T   subject to   sum over k of x[v,k] = 1,   C[v] <= T,
//                             C[v] >= C[u] + sum over k of p[v,k] x[v,k]  for each edge u -> v,
//                             sum over v of p[v,k] x[v,k] <= lanes(k) T,
//                             sum over v of bytes(v) x[v,k] <= memory(k),
//                             sum over v and k of energy[v,k,p] x[v,k] <= capacity(p) T
//
// the last where devices share resources, for each pool p of them (bounds/pools.h): while v runs in
// group k it takes so much of the pool, in the mean over the group's devices. Without these rows
// each of several sets of cores that overlap would count as if the cores were its own. Op v goes to
// that group, among those at least as fast as its median share, which has the most speed in total.
// Within the group ETF chooses (any device where the group has no room left).
//
// Guarantee (Su et al., for related machines, i.e. p[v,d] = work(v) / speed(d), without memory
// limits and congestion): O(log m / log log m) times the optimum without communication, plus the
// transfers of one chain. Our devices are unrelated, so it does not carry over. Cost: one LP with a
// variable for each op and group, then as ETF. Memory as in all constructive planners
// (device_choice.h).
//
// Su, Ren, Vardi, Wierman: Communication-aware scheduling of precedence-constrained tasks on
// related machines. arXiv 2004.14639, 2020.

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include "bounds/pools.h"
#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/published/published.h"
#include "planners/refusals.h"
#include "problem/lanes.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

using solvers::kUnbounded;
using solvers::LinearTerm;

struct SpeedClass {
  std::vector<DeviceId> devices;
  double lanes = 0;
  double memory = 0;
  double speed = 0;  // of all its devices
};

// How much faster than the mean of all devices, over the ops that the device can run.
Table<DeviceId, double> speeds(const Problem& problem) {
  Table<DeviceId, double> speed(problem.device_count(), 1);
  for (const DeviceId device : problem.devices()) {
    double own = 0;
    double mean = 0;
    for (const OpId op : problem.ops()) {
      if (problem.time(op, device) == kUnsupported) continue;
      double sum = 0;
      double count = 0;
      for (const DeviceId other : problem.devices()) {
        if (problem.time(op, other) == kUnsupported) continue;
        sum += problem.time(op, other);
        ++count;
      }
      own += problem.time(op, device);
      mean += sum / count;
    }
    if (own > 0 && mean > 0) speed[device] = mean / own;
  }
  return speed;
}

// Slow to fast.
std::vector<SpeedClass> speed_classes(const Problem& problem) {
  const Table<DeviceId, double> speed = speeds(problem);
  const double slowest = *std::min_element(speed.begin(), speed.end());
  std::map<int, SpeedClass> classes;
  for (const DeviceId device : problem.devices()) {
    SpeedClass& own = classes[static_cast<int>(std::floor(std::log2(speed[device] / slowest)))];
    const bool counted = std::ranges::any_of(
        own.devices, [&](DeviceId other) { return problem.same_space(other, device); });
    own.devices.push_back(device);
    own.lanes += useful_lanes(problem, device);
    if (!counted) own.memory += problem.space_memory(problem.space(device));
    own.speed += speed[device];
  }
  std::vector<SpeedClass> in_order;
  for (auto& [power, own] : classes) in_order.push_back(std::move(own));
  return in_order;
}

// The mean over the class's devices that may run it; kUnsupported: none.
double time_in(const Problem& problem, OpId op, const SpeedClass& own) {
  double sum = 0;
  double count = 0;
  for (const DeviceId device : own.devices) {
    if (!problem.group_allowed(problem.group(op), device)) continue;
    sum += problem.time(op, device);
    ++count;
  }
  return count > 0 ? sum / count : kUnsupported;
}

// What the op takes of the pool while it runs in the class: the mean over the class's devices that
// may run it.
double energy_in(const Problem& problem, OpId op, const SpeedClass& own, const Pools& pools,
                 PoolId pool) {
  double sum = 0;
  double count = 0;
  for (const DeviceId device : own.devices) {
    if (!problem.group_allowed(problem.group(op), device)) continue;
    ++count;
    const KindId kind = problem.kind_of(device);
    if (pools.of_kind[kind] != pool) continue;
    sum += problem.time(op, device) * problem.share(op, device) * pools.amount[kind];
  }
  return count > 0 ? sum / count : 0;
}

// The longest time of an op. Shares do not depend on the unit of time, and the solver takes no
// coefficients far from 1.
double unit_of_time(const Problem& problem) {
  double longest = 0;
  for (const Op& op : problem.draft().ops) {
    for (const double time : op.time) {
      if (time < kUnsupported) longest = std::max(longest, time);
    }
  }
  return longest > 0 ? longest : 1;
}

// No pool does more than it can until the end.
void add_pools(solvers::LinearProgram& program, const Problem& problem,
               const std::vector<SpeedClass>& classes, int end, std::span<const int> share,
               double unit) {
  const Pools pools(problem, Capacity::resources);
  for (const PoolId pool : pools.capacity.keys()) {
    const double capacity = pools.capacity[pool];
    if (capacity == 0) continue;
    std::vector<LinearTerm> row{{end, 1}};
    for (const OpId op : problem.ops()) {
      for (std::size_t k = 0; k < classes.size(); ++k) {
        const double energy = energy_in(problem, op, classes[k], pools, pool);
        if (energy == 0) continue;
        row.push_back({share[op.index() * classes.size() + k], -energy / (unit * capacity)});
      }
    }
    program.add_row(0, kUnbounded, row);
  }
}

// The linear program: x[v,k] for each op and class; nullopt if it was not solved in time.
std::optional<std::vector<double>> shares(const Problem& problem,
                                          const std::vector<SpeedClass>& classes,
                                          Control& control) {
  const double unit = unit_of_time(problem);
  solvers::LinearProgram program;
  const int end = program.add_variable(0, kUnbounded, 1);
  std::vector<std::vector<LinearTerm>> work(classes.size(), {{end, 0}});
  std::vector<std::vector<LinearTerm>> bytes(classes.size());
  Table<OpId, int> completion(problem.op_count());
  Table<OpId, std::vector<LinearTerm>> length(problem.op_count());
  std::vector<int> share(problem.op_count() * classes.size());
  for (const OpId op : problem.topological_order()) {
    completion[op] = program.add_variable(0, kUnbounded, 0);
    std::vector<LinearTerm> one;
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const double time = time_in(problem, op, classes[k]);
      const double most = time < kUnsupported ? 1 : 0;
      const int variable = program.add_variable(0, most, 0);
      share[op.index() * classes.size() + k] = variable;
      one.push_back({variable, 1});
      if (most == 0) continue;
      length[op].push_back({variable, -time / unit});
      work[k].push_back({variable, -time / unit});
      if (problem.memory(op) > 0) bytes[k].push_back({variable, problem.memory(op)});
    }
    program.add_row(1, 1, one);
    const LinearTerm last[] = {{end, 1}, {completion[op], -1}};
    program.add_row(0, kUnbounded, last);
    std::vector<LinearTerm> row = length[op];
    row.push_back({completion[op], 1});
    program.add_row(problem.model(problem.op(op).model).arrival / unit, kUnbounded, row);
    for (const OpId before : problem.predecessors(op)) {
      std::vector<LinearTerm> edge = row;
      edge.push_back({completion[before], -1});
      program.add_row(0, kUnbounded, edge);
    }
  }
  for (std::size_t k = 0; k < classes.size(); ++k) {
    work[k].front().coefficient = classes[k].lanes;
    program.add_row(0, kUnbounded, work[k]);
    if (classes[k].memory == kInfinity || classes[k].memory == 0) continue;
    for (LinearTerm& term : bytes[k]) term.coefficient /= classes[k].memory;
    program.add_row(-kUnbounded, 1, bytes[k]);
  }
  if (problem.resource_count() > 0) {
    add_pools(program, problem, classes, end, share, unit);
  }
  const solvers::LinearResult result = program.solve(
      {.time_seconds = std::max(0.01, control.remaining() / 2), .stop = control.interruption()});
  // Where memory does not even fit in shares, no share is better than another; ETF then falls back
  // on a packing.
  if (result.status == solvers::LinearStatus::infeasible) {
    return std::vector<double>(share.size(), 1 / static_cast<double>(classes.size()));
  }
  if (result.status != solvers::LinearStatus::optimal) return std::nullopt;
  std::vector<double> values(share.size());
  for (std::size_t i = 0; i < share.size(); ++i) {
    values[i] = result.values[static_cast<std::size_t>(share[i])];
  }
  return values;
}

// Each op's class: of those as fast as its median share or faster, the one with the most speed.
Table<OpId, std::size_t> chosen_classes(const Problem& problem,
                                        const std::vector<SpeedClass>& classes,
                                        const std::vector<double>& shares) {
  Table<OpId, std::size_t> chosen(problem.op_count());
  for (const OpId op : problem.ops()) {
    double sum = 0;
    std::size_t best = classes.size();
    for (std::size_t k = classes.size(); k-- > 0 && sum < 0.5;) {
      sum += shares[op.index() * classes.size() + k];
      if (time_in(problem, op, classes[k]) == kUnsupported) continue;
      if (best == classes.size() || classes[k].speed > classes[best].speed) best = k;
    }
    chosen[op] = std::min(best, classes.size() - 1);
  }
  return chosen;
}

class StayInClass final : public StartRule {
 public:
  StayInClass(const Problem& problem, const std::vector<SpeedClass>& classes,
              const Table<OpId, std::size_t>& chosen)
      : chosen_(chosen), class_of_(problem.device_count()) {
    for (std::size_t k = 0; k < classes.size(); ++k) {
      for (const DeviceId device : classes[k].devices) class_of_[device] = k;
    }
  }

  [[nodiscard]] double allowed_start(OpId op, DeviceId device, double start) const override {
    return class_of_[device] == chosen_[op] ? start : kInfinity;
  }
  void placed(OpId, DeviceId, double) override {}

 private:
  const Table<OpId, std::size_t>& chosen_;
  Table<DeviceId, std::size_t> class_of_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  if (std::string obstacle = cannot_afford_program(problem, control); !obstacle.empty()) {
    Answer answer;
    answer.reason = "the linear program for groups of devices was not begun: " + obstacle;
    return answer;
  }
  const std::vector<SpeedClass> classes = speed_classes(problem);
  const std::optional<std::vector<double>> parts = shares(problem, classes, control);
  if (!parts) {
    Answer answer;
    answer.reason = "the linear program for groups of devices was not solved in the time given";
    return answer;
  }
  const Table<OpId, std::size_t> chosen = chosen_classes(problem, classes, *parts);
  const Table<OpId, double> ranks = upward_ranks(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    StayInClass rule(problem, classes, chosen);
    return earliest_start_plan(problem, ranks, choice, rule, control);
  });
}

}  // namespace

PlannerEntry getf() {
  return PlannerEntry{
      .name = "getf",
      .summary = "an LP gives each op a group of devices, earliest start a device (GETF)",
      .objectives = {Objective::latency, Objective::total_completion},
      .role = Role::published,
      .knows = kCommonAndSharing,
      .refuses = refuses_many_edges,
      .plan = plan};
}

}  // namespace placewright
