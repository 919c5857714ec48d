// m-SCT: small communication times, within memory.
//
// An op's favourite child is the one it had better share a device with. A linear program chooses:
//
//   minimise w   subject to   s[v] >= s[u] + p[u] + x[u,v] c[u,v]  for each edge u -> v,
//                             s[v] + p[v] <= w,
//                             sum over children v of x[u,v] >= children(u) - 1,
//                             sum over parents u of x[u,v] >= parents(v) - 1,   0 <= x <= 1
//
// with mean times p over devices and mean transfer times c; v is u's favourite when x[u,v] < 1/2
// (at most one child and one parent of each op can be). Then ETF, which after u keeps u's device
// for the favourite child as long as the child's input would travel to another device; meanwhile
// other ops count as starting only after that.
//
// Devices that share resources wait for each other as the schedule so far has it
// (evaluate/partial_schedule.h); within one memory nothing travels, so no device is kept for a
// child.
//
// Guarantee (Hanen and Munier 1995, for n equal devices without memory limits, congestion and
// overheads, every transfer at most r <= 1 times as long as any op): at most 1 + (2 + 2r) / (2 + r)
// (1 - 1/n) times the optimum, that is 7/3 - 4/(3n) for r = 1. On unequal devices, as here, none.
// Cost: one LP with a variable per edge and op, then as ETF. Memory as in all constructive planners
// (device_choice.h).
//
// Jeon et al.: Baechi: fast device placement of machine learning graphs. SoCC 2020.

#include <algorithm>
#include <vector>

#include "evaluate/schedule.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/published/published.h"
#include "planners/refusals.h"
#include "problem/move_time.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

// How long a tensor travels from a device to another, on average over the others.
double mean_move(const Problem& problem, TensorId tensor, DeviceId from) {
  double sum = 0;
  double count = 0;
  for (const DeviceId to : problem.devices()) {
    if (to == from || !problem.reachable(tensor, from, to)) continue;
    ++count;
    sum += move_time(problem, tensor, from, to);
  }
  return count > 0 ? sum / count : 0;
}

double mean_move(const Problem& problem, TensorId tensor) {
  double sum = 0;
  for (const DeviceId from : problem.devices()) sum += mean_move(problem, tensor, from);
  return sum / static_cast<double>(problem.device_count());
}

// The longest of the tensors on an edge.
template <class Measure>
double over_edge(const Problem& problem, OpId from, OpId to, const Measure& measure) {
  double longest = 0;
  for (const TensorId tensor : problem.inputs(to)) {
    if (problem.producer(tensor) == from) longest = std::max(longest, measure(tensor));
  }
  return longest;
}

// Each op's favourite child; not valid: none.
std::optional<Table<OpId, OpId>> favourite_children(const Problem& problem, Control& control) {
  solvers::LinearProgram program;
  const int end = program.add_variable(0, solvers::kUnbounded, 1);
  Table<OpId, int> start(problem.op_count());
  Table<OpId, double> time(problem.op_count());
  for (const OpId op : problem.ops()) {
    start[op] = program.add_variable(0, solvers::kUnbounded, 0);
    time[op] = mean_time(problem, op);
    const solvers::LinearTerm row[] = {{end, 1}, {start[op], -1}};
    program.add_row(time[op], solvers::kUnbounded, row);
  }
  struct Edge {
    OpId from, to;
    int variable;
  };
  std::vector<Edge> edges;
  Table<OpId, std::vector<solvers::LinearTerm>> to_children(problem.op_count());
  Table<OpId, std::vector<solvers::LinearTerm>> to_parents(problem.op_count());
  for (const OpId from : problem.ops()) {
    for (const OpId to : problem.successors(from)) {
      const double move =
          over_edge(problem, from, to, [&](TensorId tensor) { return mean_move(problem, tensor); });
      const int apart = program.add_variable(0, 1, 0);
      const solvers::LinearTerm row[] = {{start[to], 1}, {start[from], -1}, {apart, -move}};
      program.add_row(time[from], solvers::kUnbounded, row);
      to_children[from].push_back({apart, 1});
      to_parents[to].push_back({apart, 1});
      edges.push_back({from, to, apart});
    }
  }
  for (const OpId op : problem.ops()) {
    for (const auto& terms : {to_children[op], to_parents[op]}) {
      if (terms.size() < 2) continue;
      program.add_row(static_cast<double>(terms.size() - 1), solvers::kUnbounded, terms);
    }
  }
  const solvers::LinearResult result = program.solve(
      {.time_seconds = std::max(0.01, control.remaining() / 2), .stop = control.interruption()});
  if (result.status != solvers::LinearStatus::optimal) return std::nullopt;
  Table<OpId, OpId> favourite(problem.op_count());
  for (const Edge& edge : edges) {
    if (result.values[static_cast<std::size_t>(edge.variable)] < 0.5)
      favourite[edge.from] = edge.to;
  }
  return favourite;
}

// Keeps a device for the favourite child of the op that ran there last.
class KeepForFavourite final : public StartRule {
 public:
  KeepForFavourite(const Problem& problem, const Table<OpId, OpId>& favourites)
      : problem_(problem), favourites_(favourites), kept_(problem.device_count()) {}

  [[nodiscard]] double allowed_start(OpId op, DeviceId device, double start) const override {
    const Kept& kept = kept_[device];
    return kept.child.valid() && kept.child != op ? std::max(start, kept.until) : start;
  }

  void placed(OpId op, DeviceId device, double end) override {
    for (Kept& kept : kept_) {
      if (kept.child == op) kept = Kept{};
    }
    const OpId child = favourites_[op];
    kept_[device] = Kept{};
    if (!child.valid()) return;
    const double away = over_edge(
        problem_, op, child, [&](TensorId tensor) { return mean_move(problem_, tensor, device); });
    kept_[device] = Kept{child, end + away};
  }

 private:
  struct Kept {
    OpId child;
    double until = 0;
  };

  const Problem& problem_;
  const Table<OpId, OpId>& favourites_;
  Table<DeviceId, Kept> kept_;
};

Answer plan(const Problem& problem, const Settings&, Control& control) {
  if (std::string obstacle = cannot_afford_program(problem, control); !obstacle.empty()) {
    Answer answer;
    answer.reason = "the linear program for favourite children was not begun: " + obstacle;
    return answer;
  }
  const std::optional<Table<OpId, OpId>> favourites = favourite_children(problem, control);
  if (!favourites) {
    Answer answer;
    answer.reason = "the linear program for favourite children was not solved in the time given";
    return answer;
  }
  const Table<OpId, double> ranks = upward_ranks(problem);
  return construct(problem, control, [&](DeviceChoice& choice) {
    KeepForFavourite rule(problem, *favourites);
    return earliest_start_plan(problem, ranks, choice, rule, control);
  });
}

}  // namespace

PlannerEntry sct() {
  return PlannerEntry{.name = "sct",
                      .summary = "favourite children from an LP, then earliest start (m-SCT)",
                      .objectives = {Objective::latency, Objective::total_completion},
                      .role = Role::published,
                      .knows = kCommonAndSharing,
                      .refuses = refuses_many_edges,
                      .plan = plan};
}

}  // namespace placewright
