#include "running/unplanned_models.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "backends/target_devices.h"
#include "machine/clock.h"
#include "problem/time_unit.h"
#include "running/run_log.h"

namespace placewright {
namespace {

// Of one model in a plan, in the problem's unit.
struct ModelTurn {
  double arrival = 0;
  double start = kInfinity;
  double end = 0;
  double time = 0;  // alone, measured
};

std::vector<ModelTurn> turns_of(const Problem& problem, const Schedule& schedule,
                                const std::vector<double>& times) {
  std::vector<ModelTurn> turns;
  for (const ModelId model : problem.models()) {
    turns.push_back({.arrival = problem.model(model).arrival, .time = times[model.index()]});
  }
  for (const OpId op : problem.ops()) {
    ModelTurn& turn = turns[problem.op(op).model.index()];
    turn.start = std::min(turn.start, schedule.start[op]);
    turn.end = std::max(turn.end, schedule.end[op]);
  }
  std::ranges::sort(turns, {}, &ModelTurn::start);
  return turns;
}

// One after the other, and never idle while a model waits that has arrived.
bool follow_each_other(std::span<const ModelTurn> turns) {
  constexpr double kTolerance = 1e-9;  // of the end of the last
  double free = 0;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const ModelTurn waiting = std::ranges::min(turns.subspan(i), {}, &ModelTurn::arrival);
    const double latest = std::max(free, waiting.arrival) + kTolerance * turns.back().end;
    if (turns[i].start < free || turns[i].start > latest) return false;
    free = turns[i].end;
  }
  return true;
}

// No model starts before a shorter one that has arrived.
bool shortest_are_first(std::span<const ModelTurn> turns) {
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const ModelTurn& next = turns[i];
    const bool passed_over = std::ranges::any_of(turns.subspan(i + 1), [&](const ModelTurn& other) {
      return other.arrival <= next.start && other.time < next.time;
    });
    if (passed_over) return false;
  }
  return true;
}

}  // namespace

UnplannedModels::UnplannedModels(const Problem& problem,
                                 const std::vector<std::unique_ptr<NeuralModel>>& models,
                                 const std::vector<Target>& targets, const RunOptions& options)
    : problem_(problem) {
  const double unit = milliseconds_in(problem.unit());
  for (const ModelId model : problem.models()) {
    arrivals_.push_back({model.index(), problem.model(model).arrival * unit});
  }
  std::vector<ArrivalPlace> places;
  for (std::size_t place = 0; place < targets.size(); ++place) {
    for (std::size_t model = 0; model < models.size(); ++model) {
      places.push_back({model, DeviceId{place}, targets[place]});
    }
  }
  runner_ = std::make_unique<ArrivalRunner>(
      problem, models, arrivals_, places,
      ArrivalRunOptions{.seed = options.seed, .inputs = options.inputs, .stop = options.stop});
  for (std::size_t place = 0; place < targets.size(); ++place) {
    const std::vector<DeviceId> devices(models.size(), DeviceId{place});
    std::vector<double> times = times_on(DeviceId{place});
    const std::string name = name_of(targets[place]);
    policies_.push_back({.name = fmt::format("in turn on {}, shortest first", name),
                         .rule = shortest_first(devices, times),
                         .target = targets[place],
                         .times = std::move(times)});
    policies_.push_back({.name = fmt::format("all at once on {}", name),
                         .rule = all_at_once(devices),
                         .target = targets[place]});
  }
}

// By model, each alone, the median of some rounds; zeros if it was interrupted.
std::vector<double> UnplannedModels::times_on(DeviceId place) {
  constexpr int kRounds = 5;
  std::vector<double> none(arrivals_.size(), 0);
  const ArrivalRule in_turn = shortest_first(std::vector<DeviceId>(none.size(), place), none);
  std::vector<std::vector<double>> times(none.size());
  for (int i = 0; i < kRounds; ++i) {
    const auto round = runner_->run(in_turn);
    if (!round) return none;
    for (std::size_t model = 0; model < times.size(); ++model) {
      const ArrivalState& state = round->states[model];
      times[model].push_back(state.end - state.start);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& of_model : times) medians.push_back(median(std::move(of_model)));
  return medians;
}

UnplannedModels::Sample UnplannedModels::sample_of(const ArrivalRound& round) const {
  // The workers of a plan are awake when a sample begins: nor does it count here that the first to
  // start wakes up.
  double origin = kInfinity;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    origin = std::min(origin, round.states[i].start - arrivals_[i].time);
  }
  std::vector<double> ends;
  for (const ArrivalState& state : round.states) ends.push_back(state.end - origin);
  return {value_of_ends(problem_, ends), std::ranges::max(ends)};
}

std::optional<double> UnplannedModels::take_turn(Policy& policy, const RunOptions& options) {
  std::vector<double> values;
  std::vector<double> disturbed_values;
  std::vector<double> latencies;
  std::vector<double> disturbed_latencies;
  bool watched = true;
  const Clock::time_point begin = Clock::now();
  const auto goes_on = [&](int samples) {
    return samples < options.warm_up + options.repeat ||
           milliseconds(Clock::now() - begin) < 1000 * options.at_least;
  };
  for (int i = 0; goes_on(i); ++i) {
    const auto round = runner_->run(policy.rule);
    if (!round) return std::nullopt;
    if (i < options.warm_up) continue;
    const Sample sample = sample_of(*round);
    (round->disturbed ? disturbed_values : values).push_back(sample.value);
    (round->disturbed ? disturbed_latencies : latencies).push_back(sample.latency);
    watched = watched && round->watched;
  }
  policy.values.push_back(measured(std::move(values), disturbed_values));
  policy.latencies.push_back(measured(std::move(latencies), disturbed_latencies));
  policy.values.back().watched = policy.latencies.back().watched = watched;
  return policy.values.back().median;
}

bool UnplannedModels::is_policy(const Plan& plan, const Policy& policy) const {
  if (policy.times.empty() || !plan.schedule) return false;
  const DeviceId first = plan.placement[OpId{0}];
  if (std::ranges::any_of(plan.placement, [&](DeviceId device) { return device != first; })) {
    return false;
  }
  if (kind_of(target_named(problem_.device(first).name)) != kind_of(policy.target)) return false;
  const std::vector<ModelTurn> turns = turns_of(problem_, *plan.schedule, policy.times);
  // The end of the last does not depend on the order.
  const bool any_order = problem_.objective() != Objective::total_completion;
  return follow_each_other(turns) && (any_order || shortest_are_first(turns));
}

}  // namespace placewright
