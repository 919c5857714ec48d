#include "planners/learned/rollouts.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "coarsen/blocks.h"
#include "coarsen/cut_nodes.h"
#include "evaluate/contiguity.h"
#include "evaluate/memory.h"
#include "evaluate/pipeline.h"
#include "evaluate/placement_plan.h"
#include "evaluate/schedule.h"
#include "machine/fan_out.h"
#include "problem/move_time.h"

namespace placewright::learned {
namespace {

// How many plans `choose_by` measures.
constexpr std::size_t kMostMeasured = 8;
// Of all walkers, where no network says how many.
constexpr std::size_t kStepsPerRound = 96;
// Of those steps, the share that go back towards the first plan.
constexpr double kBackShare = 0.5;
// Fewer placements than this are not worth a thread of their own.
constexpr std::size_t kLeastPerThread = 8;

// The device of each node; -1 where its ops are on several.
std::vector<std::int32_t> row_of(const PlacementGraph& graph, const Placement& placement) {
  std::vector<std::int32_t> row;
  for (const NodeId node : ids<NodeId>(graph.node_count())) {
    const auto ops = graph.ops[node];
    const DeviceId device = placement[ops.front()];
    const bool together =
        std::all_of(ops.begin(), ops.end(), [&](OpId op) { return placement[op] == device; });
    row.push_back(together ? static_cast<std::int32_t>(device.index()) : -1);
  }
  return row;
}

// The longest path from each op's start to the end of the graph, with the times that the placement
// gives its ops and transfers.
Table<OpId, double> ranks_of(const Problem& problem, const Placement& placement) {
  Table<OpId, double> rank = op_durations(problem, placement);
  const auto order = problem.topological_order();
  for (auto op = order.rbegin(); op != order.rend(); ++op) {
    double tail = 0;
    for (const TensorId output : problem.outputs(*op)) {
      for (const OpId reader : problem.consumers(output)) {
        const double way = move_time(problem, output, placement[*op], placement[reader]);
        tail = std::max(tail, way + rank[reader]);
      }
    }
    rank[*op] += tail;
  }
  return rank;
}

// What a placement is worth at its best: the schedule that the rollouts value it by, or that of
// plan_of_placement.
std::optional<Plan> plan_of(const Problem& problem, const Placement& placement) {
  std::optional<Plan> plan = plan_of_placement(problem, placement);
  if (!plan || !is_schedule(problem.objective())) return plan;
  Plan own =
      schedule_plan(problem, placement, dispatch(problem, placement, ranks_of(problem, placement)));
  return own.value < plan->value ? std::move(own) : std::move(plan);
}

// Moves nodes off overfull devices.
class MemoryRepair {
 public:
  MemoryRepair(const Problem& problem, const PlacementGraph& graph)
      : problem_(problem), graph_(graph) {}

  // Whether the placement is within memory at the end.
  bool mend(Placement& placement) const {
    MemoryLedger ledger(problem_, placement);
    for (const DeviceId full : problem_.devices()) {
      while (!ledger.within(full)) {
        const Move move = best_move(placement, ledger, full);
        if (!move.node.valid()) return false;
        for (const OpId op : graph_.ops[move.node]) {
          ledger.remove(op, placement[op]);
          ledger.add(op, move.to);
          placement[op] = move.to;
        }
      }
    }
    return true;
  }

 private:
  struct Move {
    NodeId node;
    DeviceId to;
    double price = kInfinity;  // time lost for each byte freed
  };

  Move best_move(const Placement& placement, MemoryLedger& ledger, DeviceId full) const {
    Move best;
    for (const NodeId node : ids<NodeId>(graph_.node_count())) {
      const auto ops = graph_.ops[node];
      if (placement[ops.front()] != full) continue;
      for (const OpId op : ops) ledger.remove(op, placement[op]);
      const double here = time_on(ops, full);
      for (const DeviceId to : problem_.devices()) {
        if (to == full || !graph_.may_go(node, to)) continue;
        const double before = ledger.used(to);
        for (const OpId op : ops) ledger.add(op, to);
        const double price =
            (std::max(0.0, time_on(ops, to) - here) + 1e-9) / (ledger.used(to) - before + 1e-9);
        if (ledger.within(to) && ledger.used(to) > before && price < best.price) {
          best = Move{node, to, price};
        }
        for (const OpId op : ops) ledger.remove(op, to);
      }
      for (const OpId op : ops) ledger.add(op, placement[op]);
    }
    return best;
  }

  [[nodiscard]] double time_on(std::span<const OpId> ops, DeviceId device) const {
    double time = 0;
    for (const OpId op : ops) time += problem_.time(op, device);
    return time;
  }

  const Problem& problem_;
  const PlacementGraph& graph_;
};

// Turns a placement into runs of blocks, one for each device.
class RunRepair {
 public:
  explicit RunRepair(const Problem& problem) : problem_(problem), blocks_(blocks_of(problem)) {}

  // Whether every block found a device.
  bool mend(Placement& placement) const {
    const std::vector<DeviceId> devices = order_of_devices(placement);
    const std::vector<std::size_t> wish = best_runs(placement, devices);
    MemoryLedger ledger(problem_);
    Placement made(problem_.op_count());
    std::size_t current = 0;
    for (const BlockId block : blocks_.keys()) {
      if (!wish.empty()) current = std::max(current, wish[block.index()]);
      while (current < devices.size() && !take(block, devices[current], ledger)) ++current;
      if (current == devices.size()) return false;
      for (const OpId op : blocks_.ops[block]) made[op] = devices[current];
    }
    placement = std::move(made);
    return true;
  }

 private:
  // By the mean position of their ops; those without ops at the end.
  [[nodiscard]] std::vector<DeviceId> order_of_devices(const Placement& placement) const {
    Table<DeviceId, double> sum(problem_.device_count(), 0);
    Table<DeviceId, double> count(problem_.device_count(), 0);
    for (const OpId op : problem_.ops()) {
      sum[placement[op]] += static_cast<double>(blocks_.block_of[op].index());
      ++count[placement[op]];
    }
    const auto position = [&](DeviceId device) {
      return count[device] > 0 ? sum[device] / count[device] : kInfinity;
    };
    std::vector<DeviceId> devices;
    for (const DeviceId device : problem_.devices()) devices.push_back(device);
    std::stable_sort(devices.begin(), devices.end(),
                     [&](DeviceId a, DeviceId b) { return position(a) < position(b); });
    return devices;
  }

  // For each block the index of its device, ascending, so that most ops stay where they are. Empty
  // where no runs are allowed.
  [[nodiscard]] std::vector<std::size_t> best_runs(const Placement& placement,
                                                   const std::vector<DeviceId>& devices) const {
    const std::size_t blocks = blocks_.size();
    const std::size_t width = devices.size();
    constexpr double kImpossible = -1;
    std::vector<double> agreement(blocks * width, kImpossible);
    std::vector<std::size_t> from(blocks * width, 0);
    for (std::size_t b = 0; b < blocks; ++b) {
      double best = b == 0 ? 0 : kImpossible;
      std::size_t best_from = 0;
      for (std::size_t d = 0; d < width; ++d) {
        if (b > 0 && agreement[(b - 1) * width + d] > best) {
          best = agreement[(b - 1) * width + d];
          best_from = d;
        }
        if (best == kImpossible) continue;
        double agreeing = 0;
        bool allowed = true;
        for (const OpId op : blocks_.ops[BlockId{b}]) {
          agreeing += placement[op] == devices[d] ? 1 : 0;
          allowed = allowed && problem_.allowed(op, devices[d]);
        }
        if (!allowed) continue;
        agreement[b * width + d] = best + agreeing;
        from[b * width + d] = best_from;
      }
    }
    const auto last = agreement.end() - static_cast<std::ptrdiff_t>(width);
    const auto end = std::max_element(last, agreement.end());
    if (*end == kImpossible) return {};
    std::vector<std::size_t> run(blocks);
    run.back() = static_cast<std::size_t>(end - last);
    for (std::size_t b = blocks - 1; b > 0; --b) run[b - 1] = from[b * width + run[b]];
    return run;
  }

  bool take(BlockId block, DeviceId device, MemoryLedger& ledger) const {
    const auto ops = blocks_.ops[block];
    if (!std::all_of(ops.begin(), ops.end(),
                     [&](OpId op) { return problem_.allowed(op, device); })) {
      return false;
    }
    for (const OpId op : ops) ledger.add(op, device);
    if (ledger.within(device)) return true;
    for (const OpId op : ops) ledger.remove(op, device);
    return false;
  }

  const Problem& problem_;
  Blocks blocks_;
};

}  // namespace

// What one thread needs to evaluate placements.
class Rollouts::Worker {
 public:
  Worker(const Problem& problem, const PlacementGraph& graph)
      : problem_(problem),
        graph_(graph),
        memory_binds_(!memory_cannot_bind(problem)),
        memory_(problem, graph),
        placement_(problem.op_count()) {
    if (asks_contiguity(problem.objective(), problem.rules())) runs_.emplace(problem);
  }

  // The value of the row once mended; infinite where it cannot be.
  double value(std::span<const std::int32_t> row) {
    for (const NodeId node : ids<NodeId>(graph_.node_count())) {
      const DeviceId device{static_cast<std::size_t>(row[node.index()])};
      for (const OpId op : graph_.ops[node]) placement_[op] = device;
    }
    if (runs_ && !runs_->mend(placement_)) return kInfinity;
    if (memory_binds_ && !runs_ && !memory_fits(problem_, placement_) &&
        !memory_.mend(placement_)) {
      return kInfinity;
    }
    return value_of(placement_);
  }

  [[nodiscard]] const Placement& placement() const { return placement_; }

  double value_of(const Placement& placement) {
    if (is_schedule(problem_.objective())) return value_of_schedule(placement);
    if (problem_.objective() == Objective::throughput) {
      return contiguous(problem_, placement) ? pipeline_value(problem_, placement) : kInfinity;
    }
    const std::optional<Plan> plan = plan_of_placement(problem_, placement);
    return plan ? plan->value : kInfinity;
  }

 private:
  [[nodiscard]] double value_of_schedule(const Placement& placement) const {
    const Schedule schedule = dispatch(problem_, placement, ranks_of(problem_, placement));
    return schedule_value(problem_, schedule.end);
  }

  const Problem& problem_;
  const PlacementGraph& graph_;
  bool memory_binds_;
  MemoryRepair memory_;
  std::optional<RunRepair> runs_;
  Placement placement_;
};

Rollouts::Rollouts(const Problem& problem, const PlacementGraph& graph, Control& control,
                   Plan first, std::uint64_t steps_per_op)
    : problem_(problem),
      graph_(graph),
      control_(control),
      best_plan_(std::move(first)),
      walkers_(graph, control.budget().seed),
      steps_per_op_(steps_per_op) {
  const int threads = std::max(1, control.budget().threads);
  for (int i = 0; i < threads; ++i) workers_.push_back(std::make_unique<Worker>(problem, graph));
  first_row_ = row_of(graph, best_plan_.placement);
  first_value_ = workers_.front()->value_of(best_plan_.placement);
  // Calls that were not split as a placement alone would be have no value of their own.
  if (first_value_ == kInfinity) first_value_ = best_plan_.value;
  best_row_ = first_row_;
  best_value_ = first_value_;
  scale_ = best_plan_.value > 0 && best_plan_.value < kInfinity ? best_plan_.value : 1;
}

Rollouts::~Rollouts() = default;

std::vector<double> Rollouts::evaluate(std::span<std::int32_t> devices) {
  const std::size_t nodes = graph_.node_count();
  const std::size_t count = devices.size() / nodes;
  std::vector<double> values(count);
  const std::vector<std::int32_t> proposed(devices.begin(), devices.end());
  const std::size_t threads =
      measure_ ? 1 : std::clamp<std::size_t>(count / kLeastPerThread, 1, workers_.size());
  FanOut{.threads = static_cast<int>(threads)}.run(threads, [&](std::size_t part) {
    for (std::size_t i = part; i < count; i += threads) {
      evaluate_row(*workers_[part], devices.subspan(i * nodes, nodes), values[i]);
    }
  });
  if (count == 0) return values;
  const auto best = std::min_element(values.begin(), values.end());
  if (*best < best_value_) {
    const auto index = static_cast<std::size_t>(best - values.begin());
    keep_if_better(std::span(proposed).subspan(index * nodes, nodes), *best);
  }
  count_placements(count);
  return values;
}

void Rollouts::explore(std::span<const std::int32_t> drawn, std::span<const std::int64_t> group_of,
                       double guided) {
  ValuedRow best{best_row_, best_value_};
  for (std::size_t node = 0; node < best.row.size(); ++node) {
    if (best.row[node] < 0) best.row[node] = drawn[node];
  }
  walkers_.begin_round(best);
  const std::size_t threads = measure_ ? 1 : std::min(walkers_.size(), workers_.size());
  FanOut{.threads = static_cast<int>(threads)}.run(threads, [&](std::size_t part) {
    for (std::size_t walker = part; walker < walkers_.size(); walker += threads) {
      walkers_.walk(walker, drawn, group_of, guided, [&](std::span<const std::int32_t> row) {
        return value_of(*workers_[part], row);
      });
    }
  });
  walkers_.end_round();
  for (std::size_t walker = 0; walker < walkers_.size(); ++walker) {
    const ValuedRow& found = walkers_.best_of(walker);
    if (found.value < best_value_) keep_if_better(found.row, found.value);
  }
  count_placements(drawn.size() / graph_.node_count());
}

void Rollouts::walk(std::size_t rounds) {
  std::vector<std::int64_t> group_of(graph_.node_count());
  std::iota(group_of.begin(), group_of.end(), std::int64_t{0});
  std::vector<std::int32_t> row = first_row_;
  for (const NodeId node : ids<NodeId>(row.size())) {
    std::int32_t& device = row[node.index()];
    if (device >= 0) continue;
    device = 0;
    while (!graph_.may_go(node, DeviceId{static_cast<std::size_t>(device)})) ++device;
  }
  std::vector<std::int32_t> drawn;
  for (std::size_t i = 0; i < kStepsPerRound; ++i)
    drawn.insert(drawn.end(), row.begin(), row.end());
  for (std::size_t round = 0; round < rounds && !should_stop(); ++round)
    explore(drawn, group_of, kBackShare);
}

void Rollouts::count_placements(std::size_t count) {
  placements_ += count;
  // Whoever plays asks `should_stop` before the next batch.
  static_cast<void>(control_.should_stop(count * problem_.op_count() * steps_per_op_));
}

void Rollouts::offer(std::vector<std::int32_t> row) {
  for (const NodeId node : ids<NodeId>(graph_.node_count())) {
    const std::int32_t device = row[node.index()];
    if (device < 0 || static_cast<std::size_t>(device) >= graph_.device_count ||
        !graph_.may_go(node, DeviceId{static_cast<std::size_t>(device)})) {
      return;
    }
  }
  const double value = value_of(*workers_.front(), row);
  if (value < best_value_) keep_if_better(row, value);
}

void Rollouts::evaluate_row(Worker& worker, std::span<std::int32_t> row, double& value) const {
  value = value_of(worker, row);
  if (value == kInfinity) {
    value = first_value_;
    std::copy(first_row_.begin(), first_row_.end(), row.begin());
    return;
  }
  const std::vector<std::int32_t> mended = row_of(graph_, worker.placement());
  std::copy(mended.begin(), mended.end(), row.begin());
}

double Rollouts::value_of(Worker& worker, std::span<const std::int32_t> row) const {
  // A batch takes longer than the whole budget on a large graph: what comes too late is not
  // evaluated.
  if (control_.remaining() <= 0 || control_.interrupted()) return kInfinity;
  const double simulated = worker.value(row);
  if (!measure_ || simulated == kInfinity) return simulated;
  const std::optional<Plan> plan = plan_of(problem_, worker.placement());
  return plan ? measure_(problem_, *plan) : kInfinity;
}

void Rollouts::measure_with(Measure measure) {
  measure_ = std::move(measure);
  first_value_ = best_value_ = measure_(problem_, best_plan_);
  first_row_ = best_row_;
}

void Rollouts::choose_by(const Measure& measure) {
  latest_.push_back(best_plan_);
  double least = kInfinity;
  for (const Plan& plan : latest_) {
    const double value = measure(problem_, plan);
    if (value >= least) continue;
    least = value;
    best_plan_ = plan;
  }
}

void Rollouts::keep_if_better(std::span<const std::int32_t> row, double value) {
  Worker& worker = *workers_.front();
  worker.value(row);
  std::optional<Plan> plan = plan_of(problem_, worker.placement());
  if (!plan) return;
  best_value_ = value;
  best_row_ = row_of(graph_, worker.placement());
  // What was measured is better whatever the evaluator says.
  if (!measure_ && plan->value >= best_plan_.value) return;
  latest_.push_back(std::move(best_plan_));
  if (latest_.size() >= kMostMeasured) latest_.pop_front();
  best_plan_ = std::move(*plan);
  control_.report(best_plan_, 0);
}

}  // namespace placewright::learned
