#include "planners/flow/flow_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "bounds/critical_path.h"
#include "evaluate/schedule.h"
#include "planners/flow/flow_rule.h"
#include "planners/flow/model_shares.h"
#include "planners/methods/device_choice.h"
#include "planners/methods/list_schedule.h"
#include "planners/methods/sweep.h"

namespace placewright {
namespace {

// A move re-times every op; this many op timings take about a second.
constexpr double kTimings = 3e7;
constexpr double kMovesForEachOp = 3000;
constexpr std::size_t kTrials = 256;
constexpr std::size_t kFirstCycle = 8;  // sweeps
constexpr std::size_t kLongestCycle = 256;

class ModelOrders {
 public:
  ModelOrders(const Problem& problem, Control& control) : problem_(problem), control_(control) {
    const std::vector<OpId> order = list_order(problem, upward_ranks(problem));
    std::vector<std::pair<ModelId, OpId>> pairs;
    for (const OpId op : order) pairs.emplace_back(problem.op(op).model, op);
    ops_ = Rows<ModelId, OpId>::from_pairs(problem.model_count(), pairs);
  }

  Answer run() {
    const auto paths = critical_paths(problem_);
    std::vector<ModelId> by_ratio;
    for (const ModelId model : problem_.models()) by_ratio.push_back(model);
    std::vector<ModelId> by_arrival = by_ratio;
    std::stable_sort(by_ratio.begin(), by_ratio.end(), [&](ModelId a, ModelId b) {
      const Model& first = problem_.model(a);
      const Model& second = problem_.model(b);
      return first.weight * (paths[b] - second.arrival) >
             second.weight * (paths[a] - first.arrival);
    });
    std::stable_sort(by_arrival.begin(), by_arrival.end(), [&](ModelId a, ModelId b) {
      return problem_.model(a).arrival < problem_.model(b).arrival;
    });
    std::vector<ModelId> best = by_ratio;
    offer(by_ratio);
    if (offer(by_arrival)) best = by_arrival;
    for (bool gained = true; gained;) {
      gained = false;
      for (std::size_t i = 0; i + 1 < best.size() && answer_.plan; ++i) {
        if (control_.should_stop()) return std::move(answer_);
        std::vector<ModelId> swapped = best;
        std::swap(swapped[i], swapped[i + 1]);
        if (!offer(swapped)) continue;
        best = std::move(swapped);
        gained = true;
      }
    }
    return std::move(answer_);
  }

 private:
  bool offer(const std::vector<ModelId>& models) {
    std::vector<OpId> order;
    for (const ModelId model : models) {
      order.insert(order.end(), ops_[model].begin(), ops_[model].end());
    }
    Answer made = construct(problem_, control_, [&](DeviceChoice& choice) {
      return earliest_end_plan(problem_, order, choice, control_);
    });
    if (!made.plan) {
      if (!answer_.plan) answer_ = std::move(made);
      return false;
    }
    if (made.value() >= answer_.value()) return false;
    answer_ = std::move(made);
    return true;
  }

  const Problem& problem_;
  Control& control_;
  Rows<ModelId, OpId> ops_;
  Answer answer_;
};

}  // namespace

Answer flow_plan(const Problem& problem, Control& control) {
  const FlowCosts costs(problem);
  return construct(problem, control, [&](DeviceChoice& choice) -> std::optional<Plan> {
    EventRun run(problem);
    FlowRule rule(problem, costs, choice);
    const auto stop = [&] { return control.should_stop(); };
    if (!run_events(
            run, [&](EventRun& now) { rule(now); }, stop))
      return std::nullopt;
    return run.finish();
  });
}

Answer models_in_turn(const Problem& problem, Control& control) {
  return ModelOrders(problem, control).run();
}

Answer whole_models_plan(const Problem& problem, Control& control) {
  constexpr std::size_t kEvaluations = 20000;
  const ModelShares shares(problem);
  std::vector<WaitingModel> waiting;
  for (const ModelId model : problem.models()) {
    waiting.push_back({model, problem.model(model).arrival});
  }
  const Table<DeviceId, double> idle(problem.device_count(), 0);
  std::vector<ModelStart> starts = shares.best(waiting, idle, kEvaluations);
  Table<ModelId, DeviceId> device_of(problem.model_count());
  Table<ModelId, double> start_of(problem.model_count(), 0);
  for (const ModelStart& start : starts) {
    device_of[start.model] = start.device;
    start_of[start.model] = start.start;
  }
  return construct(problem, control, [&](DeviceChoice& choice) -> std::optional<Plan> {
    Placement placement(problem.op_count());
    std::vector<OpId> order;
    for (const OpId op : problem.topological_order()) {
      const DeviceId wish = device_of[problem.op(op).model];
      const auto devices = choice.candidates(op);
      if (devices.empty() || control.should_stop()) return std::nullopt;
      placement[op] = std::ranges::find(devices, wish) != devices.end() ? wish : devices.front();
      choice.take(op, placement[op]);
      order.push_back(op);
    }
    std::ranges::stable_sort(order, {}, [&](OpId op) { return start_of[problem.op(op).model]; });
    ScheduleEvaluator evaluator(problem);
    Schedule schedule = retime(problem, placement, evaluator.schedule(order, placement));
    return schedule_plan(problem, std::move(placement), std::move(schedule));
  });
}

Plan refined_completion(const Problem& problem, Plan plan, double goal, Control& control) {
  if (plan.value <= goal || problem.op_count() == 0) return plan;
  Sweep sweep(problem, control.budget().seed);
  (void)sweep.start_from(plan);
  Sequence best = sweep.current();
  const auto ops = static_cast<double>(problem.op_count());
  double left = std::min(kTimings / ops, kMovesForEachOp * ops);
  const auto stop = [&](std::uint64_t moves) {
    left -= static_cast<double>(moves);
    return left <= 0 || best.value <= goal || control.should_stop(moves);
  };
  std::size_t length = kFirstCycle;
  bool descending = true;
  while (!stop(0)) {
    for (std::size_t i = 0; i < length && !stop(0); ++i) {
      const double remaining = 1 - static_cast<double>(i + 1) / static_cast<double>(length);
      const double warmth = descending ? 0 : sweep.mean_time() * remaining * remaining;
      sweep.run(kTrials, warmth, stop);
      if (sweep.current().value < best.value) best = sweep.current();
    }
    if (!descending) length = std::min(2 * length, kLongestCycle);
    descending = false;
    (void)sweep.start_from(best);
  }
  if (!(best.value < plan.value)) return plan;
  Plan better = sweep.plan_of(best);
  return better.value < plan.value ? better : plan;
}

}  // namespace placewright
